//! What the door is made with. Settings that cannot work are refused before anything is looked at.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::process::getuid;

/// Most folders that one door has.
pub const FOLDERS_MAX: usize = 8;

/// Largest request, unless the settings say otherwise.
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// Most orders that are carried out at a time, unless the settings say otherwise.
pub const ORDERS_MAX: usize = 32;

/// The longest that anything may be put off.
pub const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// What the door is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folders with requests.
    pub folders: Vec<RequestFolder>,
    /// Whose files count, by user id. Only one: a file of root's in our folder was not put there by
    /// us, and root needs no request to do something.
    pub owner: u32,
    /// Largest request, in bytes.
    pub request_bytes_max: usize,
    /// Most orders that are carried out at a time. Those that wait for a task's result do not
    /// count.
    pub orders_max: usize,
    /// How long a file that is no JSON yet may lie there unchanged before it counts as bad.
    pub settle: Duration,
    /// How often everything is looked at, whatever the system tells.
    pub rescan_every: Duration,
}

/// A folder with requests, below the project's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFolder {
    /// Where it is, below the project: `.antiphon/requests`.
    pub path: PathBuf,
    /// What to do when it is not there.
    pub absent: Absent,
    /// What to do when others may look into it.
    pub exposed: Exposed,
}

/// What to do about a folder that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// Make it, for nobody else (0700).
    Make,
    /// Wait for somebody to make it.
    Wait,
}

/// What to do about a folder of ours that others may look into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposed {
    /// Close it (0700), and use it.
    Close,
    /// Leave it alone, and say so. For projects that their owner does not trust: what comes with a
    /// clone is never private.
    Refuse,
}

impl Default for Settings {
    fn default() -> Self {
        let folder = |path: &str, absent| RequestFolder {
            path: path.into(),
            absent,
            exposed: Exposed::Close,
        };
        Self {
            folders: vec![
                folder(".antiphon/requests", Absent::Make),
                folder(".ideai/requests", Absent::Wait),
            ],
            owner: getuid().as_raw(),
            request_bytes_max: REQUEST_BYTES_MAX,
            orders_max: ORDERS_MAX,
            settle: Duration::from_millis(500),
            rescan_every: Duration::from_secs(2),
        }
    }
}

/// Settings that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Change the folder.
    #[error("`{}` cannot hold requests: name a folder below the project, without `..`", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
    },
    /// Name fewer.
    #[error("{found} folders are too many: {FOLDERS_MAX} at most")]
    Folders {
        /// How many there are.
        found: usize,
    },
    /// Wait for less.
    #[error("`{limit}` may be {PAUSE_MAX:?} at most")]
    TooLong {
        /// Which.
        limit: &'static str,
    },
    /// Allow more than nothing.
    #[error("`{limit}` must be more than 0")]
    Zero {
        /// Which.
        limit: &'static str,
    },
}

impl Settings {
    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if self.folders.len() > FOLDERS_MAX {
            return Err(SettingsError::Folders { found: self.folders.len() });
        }
        if let Some(folder) = self.folders.iter().find(|folder| !is_below(&folder.path)) {
            return Err(SettingsError::Folder { path: folder.path.clone() });
        }
        for (limit, value) in
            [("request_bytes_max", self.request_bytes_max), ("orders_max", self.orders_max)]
        {
            if value == 0 {
                return Err(SettingsError::Zero { limit });
            }
        }
        if self.rescan_every.is_zero() {
            return Err(SettingsError::Zero { limit: "rescan_every" });
        }
        for (limit, value) in [("settle", self.settle), ("rescan_every", self.rescan_every)] {
            if value > PAUSE_MAX {
                return Err(SettingsError::TooLong { limit });
            }
        }
        Ok(())
    }
}

fn is_below(path: &Path) -> bool {
    path.components().next().is_some()
        && path.components().all(|part| matches!(part, Component::Normal(_)))
}
