//! Rules that the user always allows, stored in a private file of the user.
//!
//! The file is TOML with one table per project root, which says which folder the root was: rules for a
//! folder that was replaced by another one do not apply to that. Each write replaces the file atomically under
//! a lock, so concurrent processes lose no rules. A file that cannot be read is an error; it is
//! never treated as empty and never overwritten.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, UNIX_EPOCH};

use antiphon_core::port::Rule;
use antiphon_private_file::{
    Durability, LockError, lock_within, open_lock_at, parent_of, write_atomic,
};
use serde::{Deserialize, Serialize};

use crate::rule::{ParsedRule, RULE_BYTES_MAX};

/// Largest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Most rules that are remembered for one project.
pub const RULES_MAX: usize = 1000;

/// How long to wait for the lock of another process before the write fails.
pub const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Rules that the user always allows in one project.
#[derive(Debug)]
pub struct Remembered {
    file: PathBuf,
    project: String,
    /// Which folder the root is; `None` if there is none.
    folder: Option<String>,
    rules: RwLock<Vec<Arc<ParsedRule>>>,
}

/// Why remembered rules cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum RememberedError {
    /// The file cannot be accessed: check the file and its folder.
    #[error("remembered permissions in `{path}` cannot be used: {reason}")]
    Unusable {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The file has a syntax error: correct the file, or move it away.
    #[error("remembered permissions in `{path}` cannot be read: {reason}")]
    Malformed {
        /// Path of the file.
        path: String,
        /// Position and cause of the error.
        reason: String,
    },
    /// Other users can write to the file: check its content, then restrict its permissions.
    #[error("others can write to `{path}`: look at what is in it, then run `chmod 600 {path}`")]
    Exposed {
        /// Path of the file.
        path: String,
    },
    /// Another process holds the lock: try again.
    #[error("another process has held `{path}` for {} s: try again", LOCK_WAIT.as_secs())]
    Busy {
        /// Path of the file.
        path: String,
    },
    /// The rule cannot be stored: grant it for the task instead.
    #[error("the rule cannot be remembered: {reason}")]
    Rule {
        /// What is wrong with the rule.
        reason: String,
    },
}

impl Remembered {
    /// Reads the rules that `file` stores for the project at `root`. The file need not exist yet.
    pub fn open(file: impl Into<PathBuf>, root: &Path) -> Result<Self, RememberedError> {
        let file = file.into();
        let project = key(&file, root)?;
        let folder = folder_at(root);
        let document = Document::read(&file)?;
        let rules = document.parsed(&project, folder.as_deref(), &file)?;
        Ok(Self { file, project, folder, rules: RwLock::new(rules) })
    }

    /// Removes all rules that `file` stores for the project at `root`. Blocks on the file.
    pub fn forget(file: &Path, root: &Path) -> Result<(), RememberedError> {
        let project = key(file, root)?;
        // Nothing is stored, so no file and no lock need to be made.
        if !Document::read(file)?.projects.contains_key(&project) {
            return Ok(());
        }
        let _lock = lock(file)?;
        let mut document = Document::read(file)?;
        document.projects.remove(&project);
        document.write(file)
    }

    /// The remembered rules of the project.
    pub fn rules(&self) -> Vec<Rule> {
        self.parsed().iter().map(|rule| Rule(rule.text.clone())).collect()
    }

    pub(crate) fn parsed(&self) -> Vec<Arc<ParsedRule>> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores a rule and loads the rules other processes stored meanwhile. Blocks on the file.
    pub(crate) fn add(&self, rule: &Rule) -> Result<(), RememberedError> {
        if rule.0.len() > RULE_BYTES_MAX {
            let reason =
                format!("it is longer than {} KiB; allow it for this task", RULE_BYTES_MAX / 1024);
            return Err(RememberedError::Rule { reason });
        }
        let parsed = ParsedRule::parse(&rule.0)
            .map_err(|reason| RememberedError::Rule { reason: format!("`{rule}`: {reason}") })?;
        let _lock = lock(&self.file)?;
        let mut document = Document::read(&self.file)?;
        let mut rules = document.parsed(&self.project, self.folder.as_deref(), &self.file)?;
        let project = document.projects.entry(self.project.clone()).or_default();
        if !project.is_of(self.folder.as_deref()) {
            project.allow.clear();
        }
        project.folder.clone_from(&self.folder);
        if !project.allow.contains(&parsed.text) {
            if project.allow.len() >= RULES_MAX {
                let reason = format!("there are {RULES_MAX} already; remove some from the file");
                return Err(RememberedError::Rule { reason });
            }
            project.allow.push(parsed.text.clone());
            document.write(&self.file)?;
            rules.push(Arc::new(parsed));
        }
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
        Ok(())
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    projects: BTreeMap<String, Project>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    /// Which folder the rules were allowed for; absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(default)]
    allow: Vec<String>,
}

impl Project {
    /// Whether the rules are for this folder.
    fn is_of(&self, folder: Option<&str>) -> bool {
        self.folder.is_none() || folder.is_none() || self.folder.as_deref() == folder
    }
}

/// The name of a project's table.
fn key(file: &Path, root: &Path) -> Result<String, RememberedError> {
    match root.to_str() {
        Some(project) if root.is_absolute() => Ok(project.to_owned()),
        Some(_) | None => {
            let reason = format!("`{}` is not an absolute path in UTF-8", root.display());
            Err(unusable(file)(reason))
        }
    }
}

/// Distinguishes the folder at `root` from another one at this path: its inode and its time of creation.
fn folder_at(root: &Path) -> Option<String> {
    let about = fs::metadata(root).ok()?;
    let born = about.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    Some(match born {
        Some(created) => {
            format!("{}-{}.{:09}", about.ino(), created.as_secs(), created.subsec_nanos())
        }
        None => format!("{}-{}", about.ino(), about.dev()),
    })
}

impl Document {
    fn read(path: &Path) -> Result<Self, RememberedError> {
        let unusable = unusable(path);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unusable(error.to_string())),
        };
        let metadata = file.metadata().map_err(|error| unusable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unusable("it is not a file".to_owned()));
        }
        if metadata.permissions().mode() & 0o022 != 0 {
            return Err(RememberedError::Exposed { path: path.display().to_string() });
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|error| unusable(error.to_string()))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(unusable(format!("it is larger than {FILE_BYTES_MAX} bytes")));
        }
        toml::from_str(&text).map_err(|error| RememberedError::Malformed {
            path: path.display().to_string(),
            reason: error.to_string(),
        })
    }

    fn parsed(
        &self,
        project: &str,
        folder: Option<&str>,
        path: &Path,
    ) -> Result<Vec<Arc<ParsedRule>>, RememberedError> {
        let project = self.projects.get(project).filter(|project| project.is_of(folder));
        let rules = project.map_or(&[] as &[_], |project| &project.allow);
        rules
            .iter()
            .map(|rule| {
                ParsedRule::parse(rule).map(Arc::new).map_err(|reason| RememberedError::Malformed {
                    path: path.display().to_string(),
                    reason: format!("the rule `{rule}`: {reason}"),
                })
            })
            .collect()
    }

    fn write(&self, path: &Path) -> Result<(), RememberedError> {
        const HEAD: &str = "# What was allowed always, by project. Comments are not kept.\n\n";
        let unusable = unusable(path);
        let text = toml::to_string(self).map_err(|error| unusable(error.to_string()))?;
        let write = || {
            // Replace the target of a symbolic link, not the link.
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
            write_atomic(&path, format!("{HEAD}{text}").as_bytes(), Durability::Synced)
        };
        write().map_err(|error: io::Error| unusable(error.to_string()))
    }
}

/// Locks the file for a change until the result is dropped.
fn lock(path: &Path) -> Result<File, RememberedError> {
    let unusable = unusable(path);
    let open = || {
        let folder = parent_of(path);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        open_lock_at(File::open(folder)?, name)
    };
    let file = open().map_err(|error: io::Error| unusable(error.to_string()))?;
    match lock_within(&file, LOCK_WAIT) {
        Ok(()) => Ok(file),
        Err(LockError::Busy) => Err(RememberedError::Busy { path: path.display().to_string() }),
        Err(LockError::Io(error)) => Err(unusable(error.to_string())),
    }
}

fn unusable(path: &Path) -> impl Fn(String) -> RememberedError {
    let path = path.display().to_string();
    move |reason| RememberedError::Unusable { path: path.clone(), reason }
}
