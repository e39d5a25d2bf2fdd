//! Settings of the file-drop interface. Invalid settings are refused before any file is read.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::process::getuid;

use crate::folder_trust::FolderTrust;

/// Most folders of requests.
pub const FOLDERS_MAX: usize = 8;

/// Default of [`FileDropSettings::request_bytes_max`].
pub const REQUEST_BYTES_MAX: usize = 1024 * 1024;

/// Default of [`FileDropSettings::orders_max`].
pub const ORDERS_MAX: usize = 32;

/// Longest allowed duration of any setting.
pub const PAUSE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Settings of the file-drop interface.
#[derive(Debug, Clone)]
pub struct FileDropSettings {
    /// The folders of requests, at most [`FOLDERS_MAX`].
    pub folders: Vec<RequestFolder>,
    /// Which of them the user trusts.
    pub trust: FolderTrust,
    /// User id of the only owner whose files are used. Files of root are refused, too: root did not
    /// put them there for this user, and needs no request to act.
    pub owner: u32,
    /// Largest request, in bytes.
    pub request_bytes_max: usize,
    /// Most orders that run at the same time. Orders that wait for a task's result do not count.
    pub orders_max: usize,
    /// How long a file that is not valid JSON must stay unchanged before it is rejected.
    pub settle: Duration,
    /// How often everything is scanned in addition to notifications.
    pub rescan_every: Duration,
}

/// A folder of requests in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFolder {
    /// Path relative to the project, such as `.antiphon/requests`.
    pub path: PathBuf,
    /// What to do when the folder does not exist.
    pub absent: WhenAbsent,
}

/// What to do when a folder of requests does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenAbsent {
    /// Create it with mode 0700.
    Create,
    /// Wait until it exists.
    Wait,
}

impl Default for FileDropSettings {
    fn default() -> Self {
        let folder = |path: &str, absent| RequestFolder { path: path.into(), absent };
        Self {
            folders: vec![
                folder(".antiphon/requests", WhenAbsent::Create),
                folder(".ideai/requests", WhenAbsent::Create),
            ],
            trust: FolderTrust::default(),
            owner: getuid().as_raw(),
            request_bytes_max: REQUEST_BYTES_MAX,
            orders_max: ORDERS_MAX,
            settle: Duration::from_millis(500),
            rescan_every: Duration::from_secs(2),
        }
    }
}

/// Why settings are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The path is absolute, empty or contains `..`.
    #[error("`{}` cannot hold requests: use a relative path without `..`", path.display())]
    Folder {
        /// The refused path.
        path: PathBuf,
    },
    /// Too many folders.
    #[error("{found} folders are too many: {FOLDERS_MAX} at most")]
    Folders {
        /// Number of folders in the settings.
        found: usize,
    },
    /// A duration is longer than [`PAUSE_MAX`].
    #[error("`{limit}` may be {PAUSE_MAX:?} at most")]
    TooLong {
        /// Name of the setting.
        limit: &'static str,
    },
    /// A limit is zero.
    #[error("`{limit}` must be more than 0")]
    Zero {
        /// Name of the setting.
        limit: &'static str,
    },
}

impl FileDropSettings {
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
