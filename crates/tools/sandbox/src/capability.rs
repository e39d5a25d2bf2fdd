//! Privileges within the user namespace: passed on to the second process, which gives them up for
//! good once everything is mounted.

use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities,
    capability_is_in_bounding_set, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits,
};

use crate::SandboxError;
use crate::sandbox_error::Step;

/// What the second process needs: to mount, to bring up its loopback, to give the rest up.
const NEEDED: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN, CapabilitySet::SETPCAP];

/// Lets the privileges of a new user namespace survive the start of another program.
pub(crate) fn pass_on() -> Result<(), SandboxError> {
    let step = "pass on its privileges";
    let sets = capabilities(None).during(step)?;
    let inheritable = NEEDED.into_iter().fold(sets.inheritable, CapabilitySet::union);
    set_capabilities(None, CapabilitySets { inheritable, ..sets }).during(step)?;
    NEEDED
        .into_iter()
        .try_for_each(|needed| configure_capability_in_ambient_set(needed, true))
        .during(step)
}

/// Gives up every privilege, also that of getting one again: a process of the user `root` that
/// starts a program has none either.
pub(crate) fn give_up() -> Result<(), SandboxError> {
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
