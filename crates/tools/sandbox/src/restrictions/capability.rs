//! Capabilities within the user namespace. The second process inherits them and drops them irrevocably
//! once everything is mounted.

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

use crate::SandboxError;
use crate::sandbox_error::Step;

/// Capabilities of the second process: to mount, to bring up the loopback, and to drop the others.
const NEEDED: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN, CapabilitySet::SETPCAP];

/// Lets the capabilities of a new user namespace survive the start of another program.
pub(crate) fn keep_over_exec() -> Result<(), SandboxError> {
    let step = "pass on its privileges";
    let sets = capabilities(None).during(step)?;
    let inheritable = NEEDED.into_iter().fold(sets.inheritable, CapabilitySet::union);
    set_capabilities(None, CapabilitySets { inheritable, ..sets }).during(step)?;
    NEEDED
        .into_iter()
        .try_for_each(|needed| configure_capability_in_ambient_set(needed, true))
        .during(step)
}

/// Drops every capability, and the right to gain one: not even a program started by `root` has any.
pub(crate) fn drop_all() -> Result<(), SandboxError> {
    let step = "give up its privileges";
    clear_ambient_capability_set().during(step)?;
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // The kernel refuses numbers beyond the last one it knows.
        let Ok(there) = capability_is_in_bounding_set(one) else { break };
        if there {
            remove_capability_from_bounding_set(one).during(step)?;
        }
    }
    set_capabilities_secure_bits(
        CapabilitiesSecureBits::NO_ROOT
            | CapabilitiesSecureBits::NO_ROOT_LOCKED
            | CapabilitiesSecureBits::NO_SETUID_FIXUP
            | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
            | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
            | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )
    .during(step)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .during(step)
}
