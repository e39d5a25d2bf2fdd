//! The sandbox policy, as data. It comes from the user's configuration, never from a model or a
//! project.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;

/// What commands may access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// How much of the file system commands may write.
    pub mode: SandboxMode,
    /// The folders to work in. Absolute paths of existing folders.
    pub roots: Vec<PathBuf>,
    /// Names that commands cannot change, anywhere below each root. Directly below a root a missing
    /// one cannot be created either.
    pub protected: Vec<Protected>,
    /// Files and folders that cannot even be read, anywhere: keys, settings, results.
    pub hidden: Vec<PathBuf>,
    /// A private folder that appears as `/tmp` and `/var/tmp`.
    pub tmp: PathBuf,
    /// Paths below `/tmp` or `/run` that stay visible. Everything else there is hidden.
    pub readable: Vec<PathBuf>,
    /// Whether commands have network access.
    pub network: Network,
    /// Whether commands may open sockets of the file system.
    #[serde(default)]
    pub unix_sockets: UnixSockets,
    /// A folder below a root whose repository git may change: objects, index, references and logs,
    /// but nothing that decides which programs git runs. `None`: repositories are read-only.
    #[serde(default)]
    pub repository: Option<PathBuf>,
    /// Which programs run where git may change a repository.
    #[serde(default)]
    pub git_programs: GitPrograms,
    /// What runs inside.
    #[serde(default)]
    pub runs: Runs,
    /// Resource limits.
    pub limits: Limits,
}

/// How much of the file system commands may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Commands write only to the private temp folder.
    ReadOnly,
    /// Commands write to the roots and to the private temp folder.
    Workspace,
    /// Everything that the user may do. There is no sandbox: only the environment, the limits on
    /// open files and core dumps, and the end of all processes with their task are as in the other
    /// modes.
    Full,
}

/// Whether commands have network access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// Only a loopback interface of the sandbox's own.
    Off,
    /// The network of the machine.
    On,
}

/// Whether commands may open Unix sockets. Programs that serve the user listen on such sockets:
/// container engines, key agents, other projects of Antiphon.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnixSockets {
    /// Commands reach sockets of their own sandbox only. Before Linux 7.1 the kernel cannot tell
    /// these from others, and then no Unix socket can be opened at all, except connected pairs.
    #[default]
    Refused,
    /// Commands may open Unix sockets. Those that a program listened on when the sandbox was made
    /// are hidden, others can be reached.
    Allowed,
}

/// Which programs run where git may change a repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitPrograms {
    /// Git's own, and a few that only read. Filters, drivers, editors, helpers and scripts are not started.
    #[default]
    GitOnly,
    /// Every program. Those that git starts can write to the repository as git can.
    All,
}

/// What runs in a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Runs {
    /// Commands of an agent.
    #[default]
    Commands,
    /// A worker with a whole task. Its file tools resolve paths with `openat2`, so commands of the task have it
    /// too: they can set the owner's rights on a new file with it.
    TaskWorker,
}

/// A name below each root that commands cannot change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    /// The name, compared as a whole.
    pub name: String,
    /// The kind of protection.
    pub guard: Guard,
}

/// The kind of protection of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// It cannot be changed.
    ReadOnly,
    /// It can be neither changed nor read.
    Hidden,
}

/// Resource limits of commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Most address space of one process, in bytes. `None` by default: many runtimes reserve far
    /// more than they use.
    #[serde(default)]
    pub process_bytes_max: Option<u64>,
    /// Most memory of all processes of a task's commands, in bytes. `None`: three quarters of what
    /// the machine has.
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
    /// Most processes of a task's commands at a time. `None`: [`PROCESSES_DEFAULT`].
    #[serde(default)]
    pub processes_max: Option<u64>,
    /// Most bytes by which commands may fill a disk, and most bytes of one file. `None`:
    /// [`DISK_BYTES_DEFAULT`].
    #[serde(default)]
    pub disk_bytes_max: Option<u64>,
}

/// Default of [`Limits::processes_max`].
pub const PROCESSES_DEFAULT: u64 = 512;

/// Default of [`Limits::disk_bytes_max`]: 32 GiB.
pub const DISK_BYTES_DEFAULT: u64 = 32 << 30;

/// Least memory that a limit leaves, in bytes.
const MEMORY_BYTES_MIN: u64 = 64 << 20;

impl Limits {
    /// Most memory of all processes, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let machine = || {
            let info = rustix::system::sysinfo();
            info.totalram.saturating_mul(info.mem_unit.into())
        };
        self.memory_bytes_max.unwrap_or_else(|| machine() / 4 * 3).max(MEMORY_BYTES_MIN)
    }

    /// Most processes at a time.
    pub fn processes(&self) -> u64 {
        self.processes_max.unwrap_or(PROCESSES_DEFAULT).max(2)
    }

    /// Most bytes by which commands may fill a disk.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes_max.unwrap_or(DISK_BYTES_DEFAULT)
    }
}

/// The program that runs commands: usually this binary with an argument that makes it a worker. It
/// must call the worker's main function and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// Path of the program.
    pub program: PathBuf,
    /// Arguments that make the program a worker.
    pub args: Vec<OsString>,
}

impl Protected {
    /// The default: the repository and the control folders.
    pub fn usual() -> Vec<Self> {
        let protected = |name: &str, guard| Self { name: name.to_owned(), guard };
        vec![
            protected(".git", Guard::ReadOnly),
            protected(".ideai", Guard::ReadOnly),
            protected(".antiphon", Guard::Hidden),
        ]
    }
}

impl SandboxMode {
    pub(crate) fn writes_roots(self) -> bool {
        match self {
            Self::Workspace => true,
            Self::ReadOnly | Self::Full => false,
        }
    }
}

impl Policy {
    /// Checks every path and resolves symbolic links. The rest of this crate requires a resolved
    /// policy.
    pub fn resolved(&self) -> Result<Self, SandboxError> {
        if let Some(protected) = self.protected.iter().find(|protected| !is_name(&protected.name)) {
            return Err(SandboxError::Policy {
                reason: format!("`{}` is not the name of a file", protected.name),
            });
        }
        let roots = self.roots.iter().map(|root| folder(root)).collect::<Result<Vec<_>, _>>()?;
        if roots.iter().any(|root| root.parent().is_none()) {
            return Err(SandboxError::Policy {
                reason: "`/` cannot be a workspace: choose a folder in it".to_owned(),
            });
        }
        let readable = self.readable.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let hidden = self.hidden.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?;
        Ok(Self { roots, readable, hidden, tmp: folder(&self.tmp)?, ..self.clone() })
    }
}

fn is_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(only)), None) if only == name)
}

fn absolute(path: &Path) -> Result<PathBuf, SandboxError> {
    let plain =
        |component: Component<'_>| matches!(component, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.components().all(plain) {
        return Ok(path.components().collect());
    }
    Err(SandboxError::Policy {
        reason: format!("`{}` must be an absolute path without `..`", path.display()),
    })
}

fn folder(path: &Path) -> Result<PathBuf, SandboxError> {
    let refused =
        |why: String| SandboxError::Policy { reason: format!("`{}` {why}", path.display()) };
    if !path.is_absolute() {
        return Err(refused("must be an absolute path".to_owned()));
    }
    let real = path.canonicalize().map_err(|error| refused(format!("cannot be used: {error}")))?;
    if real.is_dir() { Ok(real) } else { Err(refused("is not a folder".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(root: &Path) -> Policy {
        Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: std::env::temp_dir(),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            repository: None,
            git_programs: GitPrograms::GitOnly,
            runs: Runs::Commands,
            limits: Limits::default(),
        }
    }

    fn reason(policy: &Policy) -> String {
        policy.resolved().unwrap_err().to_string()
    }

    #[test]
    fn a_root_that_is_a_link_becomes_what_it_points_to() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(policy(&link).resolved().unwrap().roots, [real]);
    }

    #[test]
    fn invalid_roots_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(reason(&policy(Path::new("/"))).contains("choose a folder in it"));
        assert!(reason(&policy(Path::new("relative"))).contains("absolute"));
        assert!(reason(&policy(&file)).contains("not a folder"));
        assert!(reason(&policy(&folder.path().join("absent"))).contains("cannot be used"));
    }

    #[test]
    fn names_and_hidden_paths_are_checked() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["", ".", "..", "a/b", "/a", "a/"] {
            let mut policy = policy(folder.path());
            policy.protected[0].name = name.to_owned();
            assert!(reason(&policy).contains("not the name of a file"), "{name:?}");
        }
        let mut policy = policy(folder.path());
        policy.hidden = vec!["/etc/../root".into()];
        assert!(reason(&policy).contains("without `..`"));
    }

    #[test]
    fn a_policy_travels_as_json() {
        let policy = policy(Path::new("/somewhere"));
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy);
    }
}
