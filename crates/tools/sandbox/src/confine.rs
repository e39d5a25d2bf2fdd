//! The first of the two processes: creates the namespaces and starts the second process in them.

use std::path::Path;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::process::{getegid, geteuid, set_child_subreaper};

use crate::control_group::ControlGroup;
use crate::new_submodule::Submodules;
use crate::placeholder::Placeholders;
use crate::protected_path::named_paths;
use crate::repository::{OPENED, Repository};
use crate::sandbox_error::{NAMESPACES_REMEDY, Step};
use crate::sweep::Irregular;
use crate::{Policy, SandboxError, SandboxMode, capability, limits};

/// The second process, and resources that must live as long as it runs.
#[derive(Debug)]
pub struct Confined {
    /// The second process. In every mode but [`SandboxMode::Full`] all its descendants have ended when it
    /// is seen to end.
    pub child: Child,
    // Before the repository, whose descriptors it uses.
    _placeholders: Placeholders,
    _repository: Option<OpenRepository>,
    _group: Option<ControlGroup>,
}

/// Cleans up a repository that commands could change. Dropped after the second process has ended.
#[derive(Debug)]
struct OpenRepository {
    repository: Repository,
    before: Irregular,
    submodules: Submodules,
}

impl OpenRepository {
    fn new(repository: Repository) -> Result<Self, SandboxError> {
        let before = Irregular::of(&repository).during("look for links in the repository")?;
        let submodules = Submodules::of(&repository);
        Ok(Self { repository, before, submodules })
    }
}

impl Drop for OpenRepository {
    fn drop(&mut self) {
        self.before.sweep(&self.repository);
        self.submodules.set_aside_new(&self.repository);
    }
}

impl Policy {
    /// Starts `inside` in new namespaces. That program must call [`Policy::enforce`] with the same
    /// policy before it does anything else. The calling process must have a single thread. It is
    /// changed: every other process it starts is in these namespaces too.
    ///
    /// In [`SandboxMode::Full`] there are no namespaces: `inside` is started directly, and processes it
    /// leaves become children of the caller.
    pub fn confine(&self, inside: &mut Command) -> Result<Confined, SandboxError> {
        let policy = self.resolved()?;
        let repository = Repository::of(&policy)?.map(OpenRepository::new).transpose()?;
        let opened = repository.as_ref().map(|open| &open.repository);
        inside.env(OPENED, opened.map(Repository::identities).unwrap_or_default());
        let placeholders = match policy.mode {
            SandboxMode::Full => {
                set_child_subreaper(rustix::process::Pid::from_raw(1)).during("adopt orphans")?;
                Placeholders::claim(&[], None)?
            }
            SandboxMode::ReadOnly | SandboxMode::Workspace => {
                require_single_thread()?;
                let placeholders = Placeholders::claim(&named_paths(&policy)?, opened)?;
                isolate()?;
                placeholders
            }
        };
        let group = ControlGroup::create(&policy.limits);
        let child = inside.spawn().during("start the confined process")?;
        let group = group.filter(|group| group.add(child.id()).is_some());
        Ok(Confined { child, _placeholders: placeholders, _repository: repository, _group: group })
    }
}

/// Fails unless this process has a single thread: only that thread would enter a namespace.
pub(crate) fn require_single_thread() -> Result<(), SandboxError> {
    let threads = std::fs::read_dir("/proc/self/task").during("count its threads")?.count();
    if threads == 1 {
        return Ok(());
    }
    Err(SandboxError::Failed {
        step: "restrict the process".to_owned(),
        reason: format!("it has {threads} threads, and may have only one"),
    })
}

fn isolate() -> Result<(), SandboxError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID).map_err(unavailable)?;
    // Without this the kernel takes no group map from an ordinary user.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", &format!("{group} {group} 1"))?;
    capability::keep_over_exec()
}

fn write(path: &str, text: &str) -> Result<(), SandboxError> {
    std::fs::write(Path::new(path), text).during(format!("write `{path}`"))
}

pub(crate) fn unavailable(error: Errno) -> SandboxError {
    SandboxError::Unavailable {
        what: "user namespaces",
        reason: error.to_string(),
        remedy: NAMESPACES_REMEDY,
    }
}

/// Limits that hold in every mode, also without a sandbox.
pub(crate) fn unconfined() -> Result<(), SandboxError> {
    limits::files_and_dumps()
}
