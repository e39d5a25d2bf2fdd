//! The second of the two processes: restricts itself, for good, before it does anything else.

use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::process::{
    DumpableBehavior, Signal, getpid, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use crate::confine::{alone, unavailable, unconfined};
use crate::listener::listeners;
use crate::sandbox_error::Step;
use crate::shield::shields;
use crate::view::View;
use crate::{Mode, Network, Policy, SandboxError, capability, limits, loopback, syscalls, writes};

/// A process that is restricted, and what has to stay true for that.
#[derive(Debug)]
pub struct Enforced {
    covered: Vec<PathBuf>,
    absent: Vec<PathBuf>,
}

impl Policy {
    /// Restricts the calling process and all that it will start. It has to be the one that
    /// [`Policy::confine`] started, with the same policy, and have a single thread. After an error
    /// it may be restricted in part and should end.
    ///
    /// Everything is gone when this process ends, and it ends when the one that started it does.
    pub fn enforce(&self) -> Result<Enforced, SandboxError> {
        let policy = self.resolved()?;
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie itself to its parent")?;
        // Fails only for who leads a group already, and then has no terminal either.
        let _ = setsid();
        match policy.mode {
            Mode::Full => {
                unconfined()?;
                Ok(Enforced { covered: Vec::new(), absent: Vec::new() })
            }
            Mode::ReadOnly | Mode::Workspace => confined(&policy),
        }
    }
}

impl Enforced {
    /// A protected place that is protected no longer, because somebody outside replaced it or made
    /// it. A new sandbox has to be made then.
    pub fn stale(&self) -> Option<&Path> {
        let uncovered = self.covered.iter().find(|path| !is_covered(path));
        let made = || self.absent.iter().find(|path| path.symlink_metadata().is_ok());
        uncovered.or_else(made).map(PathBuf::as_path)
    }
}

fn confined(policy: &Policy) -> Result<Enforced, SandboxError> {
    alone()?;
    if getpid().as_raw_pid() != 1 {
        return Err(SandboxError::Failed {
            step: "restrict the process".to_owned(),
            reason: "it was not started in a process namespace of its own".to_owned(),
        });
    }
    // Read while the outside is still seen.
    let listeners = listeners(&std::fs::read("/proc/net/unix").unwrap_or_default());
    let shields = shields(policy)?;
    let mut namespaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    match policy.network {
        Network::Off => namespaces |= CloneFlags::CLONE_NEWNET,
        Network::On => {}
    }
    unshare(namespaces).map_err(unavailable)?;
    let view = View::build(policy, &shields, &listeners)?;
    match policy.network {
        Network::Off => loopback::raise()?,
        Network::On => {}
    }
    limits::all(&policy.limits)?;
    capability::give_up()?;
    // Nobody inside looks into this process, whose socket leads outside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during("close its memory")?;
    let mut writable = view.writable;
    writable.push(PathBuf::from("/dev"));
    writes::only_beneath(&writable)?;
    syscalls::restrict()?;
    Ok(Enforced { covered: view.covered, absent: view.absent })
}

fn is_covered(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(CWD, path, flags, StatxFlags::empty()) {
        Ok(found) => {
            // Kernels before 5.8 do not say.
            !found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
                || found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        }
        Err(_) => false,
    }
}
