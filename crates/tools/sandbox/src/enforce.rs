//! The second of the two processes: restricts itself, for good, before it does anything else.

use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::process::{
    DumpableBehavior, Signal, getpid, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use crate::confine::{require_single_thread, unavailable, unconfined};
use crate::listener::listeners;
use crate::mounts::View;
use crate::protected_path::protected_paths;
use crate::sandbox_error::Step;
use crate::{
    Mode, Network, Policy, SandboxError, capability, limits, loopback, syscalls, write_limit,
};

/// Proof that this process is restricted, with the paths that must stay covered.
#[derive(Debug)]
pub struct Enforced {
    covered: Vec<PathBuf>,
    absent: Vec<PathBuf>,
}

impl Policy {
    /// Restricts the calling process and every process it will start. It must be the process that
    /// [`Policy::confine`] started, with the same policy, and have a single thread. After an error
    /// it may be restricted in part and should end.
    ///
    /// When this process ends, every process it started ends; it ends when its parent ends.
    pub fn enforce(&self) -> Result<Enforced, SandboxError> {
        let policy = self.resolved()?;
        set_parent_process_death_signal(Some(Signal::KILL)).during("tie itself to its parent")?;
        // Fails only for a group leader, which has no terminal either.
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
    /// A path that is no longer protected, because a process outside replaced or created it. Then a
    /// new sandbox is needed.
    pub fn stale(&self) -> Option<&Path> {
        let uncovered = self.covered.iter().find(|path| !is_covered(path));
        let made = || self.absent.iter().find(|path| path.symlink_metadata().is_ok());
        uncovered.or_else(made).map(PathBuf::as_path)
    }
}

fn confined(policy: &Policy) -> Result<Enforced, SandboxError> {
    require_single_thread()?;
    if getpid().as_raw_pid() != 1 {
        return Err(SandboxError::Failed {
            step: "restrict the process".to_owned(),
            reason: "it was not started in a process namespace of its own".to_owned(),
        });
    }
    // Read before the view is built, while the sockets outside are visible.
    let listeners = listeners(&std::fs::read("/proc/net/unix").unwrap_or_default());
    let protected_paths = protected_paths(policy)?;
    let mut namespaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    match policy.network {
        Network::Off => namespaces |= CloneFlags::CLONE_NEWNET,
        Network::On => {}
    }
    unshare(namespaces).map_err(unavailable)?;
    let view = View::build(policy, &protected_paths, &listeners)?;
    match policy.network {
        Network::Off => loopback::bring_up()?,
        Network::On => {}
    }
    limits::all(&policy.limits)?;
    capability::drop_all()?;
    // No process inside may inspect this process, whose socket leads outside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during("close its memory")?;
    let mut writable = view.writable;
    writable.push(PathBuf::from("/dev"));
    write_limit::only_below(&writable)?;
    syscalls::restrict()?;
    Ok(Enforced { covered: view.covered, absent: view.absent })
}

fn is_covered(path: &Path) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    match statx(CWD, path, flags, StatxFlags::empty()) {
        Ok(found) => {
            // Kernels before 5.8 do not report it.
            !found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
                || found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        }
        Err(_) => false,
    }
}
