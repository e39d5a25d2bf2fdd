//! Maintenance of a journal: by its owner, while no other process uses it. Verifying also works
//! beside an owner.
//!
//! | file      | subject                                             |
//! |-----------|-----------------------------------------------------|
//! | `verify`  | reads everything and says what is wrong             |
//! | `compact` | gives unused space back                             |
//! | `prune`   | removes ended tasks                                 |
//! | `repair`  | saves what can be read of a damaged journal         |

pub(crate) mod compact;
pub(crate) mod prune;
pub(crate) mod repair;
pub(crate) mod verify;

use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::backup::with_suffix;
use crate::file::owner::Owner;
use crate::file::quick_check::quick_check;
use crate::file::schema;
use crate::journal::{OpenError, SyncPolicy, connect, open_error};

/// What maintenance is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaintenanceStep {
    /// What it does, such as `checking the pages`.
    pub doing: &'static str,
    /// What is done and all of it, where that is known.
    pub progress: Option<(u64, u64)>,
}

impl MaintenanceStep {
    pub(crate) fn begin(doing: &'static str) -> Self {
        Self { doing, progress: None }
    }

    pub(crate) fn at(doing: &'static str, done: u64, total: u64) -> Self {
        Self { doing, progress: Some((done, total)) }
    }
}

/// A journal that this process owns, with its tables as the latest schema has them.
struct OwnedFile {
    connection: Connection,
    /// Released last.
    _owner: Owner,
}

impl OwnedFile {
    fn open(path: &Path) -> Result<Self, OpenError> {
        if let Err(error) = fs::metadata(path) {
            return Err(unusable(path, &error));
        }
        let owner = Owner::claim(path)?;
        quick_check(path)?;
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| open_error(path, &error))?;
        schema::prepare(&mut connection, path, SyncPolicy::Full)?;
        Ok(Self { connection, _owner: owner })
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Unusable { path: path.to_owned(), reason: error.to_string() }
}

/// Size of the file and its log, in bytes.
fn bytes_on_disk(path: &Path) -> u64 {
    let bytes = |path: &Path| fs::metadata(path).map_or(0, |about| about.len());
    bytes(path) + bytes(&with_suffix(path, "-wal"))
}
