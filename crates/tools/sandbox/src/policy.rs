//! What a process may touch, as data. Nothing of it comes from a model or a project: whoever
//! wires the binary says it.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::SandboxError;

/// What commands may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// How much.
    pub mode: Mode,
    /// The folders that are worked in. Absolute, and there already.
    pub roots: Vec<PathBuf>,
    /// Names directly beneath each root that stay as they are. One that is not there cannot be
    /// made either.
    pub protected: Vec<Protected>,
    /// Files and folders that cannot even be read, wherever they are: keys, settings, results.
    pub hidden: Vec<PathBuf>,
    /// A private folder that is seen as `/tmp` and `/var/tmp`.
    pub tmp: PathBuf,
    /// What is to be seen although it lies beneath `/tmp` or `/run`, where nothing of the
    /// machine's is seen otherwise.
    pub readable: Vec<PathBuf>,
    /// Whether there is a network.
    pub network: Network,
    /// How much of the machine.
    pub limits: Limits,
}

/// How much commands may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Writes go to the private temp folder and nowhere else.
    ReadOnly,
    /// Writes go to the roots and to the private temp folder.
    Workspace,
    /// Whatever the user may. There is no sandbox: only the environment, the limits on open files
    /// and core dumps, and the end of everything with its task are as in the other modes.
    Full,
}

/// Whether there is a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// A loopback interface of the sandbox's own, and nothing else.
    Off,
    /// The machine's.
    On,
}

/// A name beneath each root that commands leave alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protected {
    /// The name, compared whole.
    pub name: String,
    /// From what it is protected.
    pub guard: Guard,
}

/// From what something is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// From being changed.
    ReadOnly,
    /// From being changed and from being read.
    Hidden,
}

/// How much of the machine commands may take.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Address space of one process, in bytes. None unless the user asks for it: many runtimes
    /// reserve far more than they use.
    pub process_bytes_max: Option<u64>,
}

/// The program that runs commands on our behalf: this binary, told to be a worker. Whatever is
/// started with it calls the worker's main function and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The binary.
    pub program: PathBuf,
    /// How it is told to be a worker.
    pub args: Vec<OsString>,
}

/// Names in a home folder that hold keys and passwords, for [`Policy::hidden`].
pub const SECRETS_IN_HOME: [&str; 14] = [
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
];

impl Protected {
    /// What is protected unless the user says otherwise: the repository and the control folders.
    pub fn usual() -> Vec<Self> {
        let protected = |name: &str, guard| Self { name: name.to_owned(), guard };
        vec![
            protected(".git", Guard::ReadOnly),
            protected(".ideai", Guard::ReadOnly),
            protected(".antiphon", Guard::Hidden),
        ]
    }
}

impl Mode {
    pub(crate) fn writes_roots(self) -> bool {
        match self {
            Self::Workspace => true,
            Self::ReadOnly | Self::Full => false,
        }
    }
}

impl Policy {
    /// The same with every path checked and without symbolic links. Nothing else in this crate
    /// takes a policy that did not come from here.
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
            mode: Mode::Workspace,
            roots: vec![root.to_owned()],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: std::env::temp_dir(),
            readable: Vec::new(),
            network: Network::Off,
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
    fn roots_that_cannot_be_one_are_refused() {
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
