//! The second of the two processes: restricts itself, irrevocably, before it does anything else.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::process::{
    DumpableBehavior, Signal, getpid, set_dumpable_behavior, set_parent_process_death_signal,
    setsid,
};

use crate::absent_paths::AbsentPaths;
use crate::confine::{require_single_thread, unavailable, unconfined};
use crate::followed_links::FollowedLinks;
use crate::git_programs::{copy_in_memory, only_programs};
use crate::listener::listeners;
use crate::mounts::{View, fd_path};
use crate::nested::{self, KnownFolders};
use crate::protected_path::protected_paths;
use crate::real_paths::RealPaths;
use crate::repository::Repository;
use crate::sandbox_error::Step;
use crate::syscalls::{self, UnixFamily};
use crate::write_limit::{self, SocketLimit};
use crate::{
    Network, Policy, SandboxError, SandboxMode, UnixSockets, capability, limits, loopback,
};

/// Proof that this process is restricted, with the paths that must stay covered.
#[derive(Debug)]
pub struct Enforced {
    policy: Policy,
    view: View,
    /// Missing paths that would have to be covered if they existed.
    absent: AbsentPaths,
    /// Links on the way to protected paths.
    links: FollowedLinks,
    /// Folders below the roots with nothing to protect.
    folders: KnownFolders,
    /// Whether every program can be started.
    starts_all: bool,
}

/// A program that the restricted process itself can start.
#[derive(Debug)]
pub struct Startable {
    path: PathBuf,
    /// Its copy, if others may not start it.
    _copy: Option<OwnedFd>,
}

impl Startable {
    /// Path to start it with, in this process only.
    pub fn path(&self) -> &Path {
        &self.path
    }
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
            SandboxMode::Full => {
                unconfined()?;
                let (view, absent) = (View::default(), AbsentPaths::default());
                let (links, folders) = (FollowedLinks::default(), KnownFolders::default());
                Ok(Enforced { policy, view, absent, links, folders, starts_all: true })
            }
            SandboxMode::ReadOnly | SandboxMode::Workspace => confined(policy),
        }
    }
}

impl Enforced {
    /// A path that is no longer protected, because a process outside replaced or created it, or a link that leads elsewhere.
    /// Then a new sandbox is needed.
    pub fn stale(&mut self) -> Option<PathBuf> {
        let uncovered = self.view.covered.iter().find(|path| !is_covered(path)).cloned();
        let changed = uncovered.or_else(|| self.links.changed());
        changed.or_else(|| self.absent.appeared(SystemTime::now()))
    }

    /// Makes a program startable by this process, also where other programs may not start it.
    pub fn startable(&self, program: &Path) -> Result<Startable, SandboxError> {
        if self.starts_all {
            return Ok(Startable { path: program.to_owned(), _copy: None });
        }
        let copy = copy_in_memory(program).during(format!("copy `{}`", program.display()))?;
        Ok(Startable { path: fd_path(&copy), _copy: Some(copy) })
    }

    /// A repository or another protected path that has appeared below a root since the sandbox was
    /// made. Only a new sandbox protects it. The search takes a short time only, so it may miss one
    /// in a large workspace.
    pub fn appeared(&mut self) -> Option<PathBuf> {
        if self.policy.mode == SandboxMode::Full || self.policy.repository.is_some() {
            return None;
        }
        let view = &self.view;
        // The folder of a submodule is protected as a whole until it is a repository.
        let is_new_submodule = |path: &Path| {
            path.file_name().is_some_and(|name| name == ".git")
                && path.parent().is_some_and(|folder| view.covered.iter().any(|at| at == folder))
                && path.parent().is_some_and(|folder| view.protects(folder))
        };
        let is_known = |path: &Path| view.protects(path) && !is_new_submodule(path);
        nested::appeared(&self.policy, &mut self.folders, SystemTime::now(), is_known)
    }
}

fn confined(policy: Policy) -> Result<Enforced, SandboxError> {
    require_single_thread()?;
    if getpid().as_raw_pid() != 1 {
        return Err(SandboxError::Failed {
            step: "restrict the process".to_owned(),
            reason: "it was not started in a process namespace of its own".to_owned(),
        });
    }
    // Read before the view is built, while the sockets outside are visible.
    let listeners = listeners(&std::fs::read("/proc/net/unix").unwrap_or_default());
    let repository = Repository::of(&policy)?;
    repository.as_ref().map_or(Ok(()), Repository::check_identities)?;
    let mut real = RealPaths::default();
    let protected_paths = protected_paths(&policy, repository.as_ref(), &mut real)?;
    let mut namespaces = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    match policy.network {
        Network::Off => namespaces |= CloneFlags::CLONE_NEWNET,
        Network::On => {}
    }
    unshare(namespaces).map_err(unavailable)?;
    let mut view = View::build(&policy, &protected_paths, repository.as_ref(), &listeners)?;
    let programs = only_programs(&policy)?;
    if programs.is_some() {
        view.refuse_programs()?;
    }
    match policy.network {
        Network::Off => loopback::bring_up()?,
        Network::On => {}
    }
    limits::all(&policy.limits)?;
    capability::drop_all()?;
    // No process inside may inspect this process, whose socket leads outside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during("close its memory")?;
    let mut writable = view.writable.clone();
    writable.push(PathBuf::from("/dev"));
    let limit = write_limit::only_below(&writable, programs.as_deref(), policy.unix_sockets)?;
    let unix = match (policy.unix_sockets, limit) {
        (UnixSockets::Refused, SocketLimit::None) => UnixFamily::PairsOnly,
        (UnixSockets::Refused, SocketLimit::Own) | (UnixSockets::Allowed, _) => UnixFamily::Open,
    };
    syscalls::restrict(unix, policy.runs)?;
    let absent = AbsentPaths::new(std::mem::take(&mut view.absent), SystemTime::now());
    let links = FollowedLinks::new(real.into_links(), |path| view.is_private(path));
    let (folders, starts_all) = (KnownFolders::default(), programs.is_none());
    Ok(Enforced { policy, view, absent, links, folders, starts_all })
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
