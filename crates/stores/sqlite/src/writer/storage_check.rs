//! Whether the file takes another append, and the end of all writes when it is gone.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_core::port::AppendFault;
use rusqlite::{Connection, TransactionBehavior};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::backup::rescue::rescue;
use crate::backup::staging_folder::folder_of;
use crate::file::open_file::OpenFile;
use crate::file::schema::SCHEMA;

/// With less room on its disk, a journal reports that it cannot be written. Running tasks still use
/// the rest.
pub const FREE_BYTES_MIN: u64 = 1024 * 1024;

/// When a rescue that failed is tried again.
const RESCUE_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What the writer knows about its file.
#[derive(Debug)]
pub(crate) struct StorageCheck {
    file: OpenFile,
    /// Whether the last transaction failed.
    pub(crate) failed: bool,
    rescue: Rescue,
}

#[derive(Debug)]
enum Rescue {
    NotNeeded,
    Done(PathBuf),
    Failed { at: Instant, reason: String },
}

impl StorageCheck {
    pub(crate) fn new(file: OpenFile) -> Self {
        Self { file, failed: false, rescue: Rescue::NotNeeded }
    }

    /// Why nothing may be written: the file is no longer the journal. Copies its content the first time.
    pub(crate) fn replaced(&mut self, open: &mut Connection) -> Option<String> {
        let Some(fault) = self.file.fault() else {
            self.rescue = Rescue::NotNeeded;
            return None;
        };
        let rescued = self.rescued(open);
        let advice = match rescued {
            Ok(path) => format!(
                "every recorded event is in {0}: stop this process, move away what is in the place of the \
                 journal, and run `antiphon restore --continue {0}`",
                path.display()
            ),
            Err(reason) => format!(
                "its content could not be copied ({reason}) and is lost when this process ends: make room, \
                 and keep the process running"
            ),
        };
        Some(format!("{fault} while it is in use. Nothing more is written, and {advice}"))
    }

    fn rescued(&mut self, open: &mut Connection) -> Result<PathBuf, String> {
        match &self.rescue {
            Rescue::Done(path) => return Ok(path.clone()),
            Rescue::Failed { at, reason } if at.elapsed() < RESCUE_AGAIN_AFTER => {
                return Err(reason.clone());
            }
            Rescue::NotNeeded | Rescue::Failed { .. } => {}
        }
        let rescued = rescue(open, self.file.path());
        self.rescue = match &rescued {
            Ok(path) => Rescue::Done(path.clone()),
            Err(reason) => Rescue::Failed { at: Instant::now(), reason: reason.clone() },
        };
        rescued
    }

    /// Whether an append would be stored. After a failure it writes a page to find out; otherwise it
    /// looks at the free space only.
    pub(crate) fn check(&mut self, open: &mut Connection) -> Result<(), AppendFault> {
        if let Some(reason) = self.replaced(open) {
            return Err(AppendFault::Replaced { reason });
        }
        if let Some(reason) = self.no_space() {
            return Err(AppendFault::Unavailable { reason });
        }
        if self.failed {
            let written = probe(open);
            written.map_err(|error| AppendFault::Unavailable { reason: error.to_string() })?;
            self.failed = false;
        }
        Ok(())
    }

    fn no_space(&self) -> Option<String> {
        let folder = folder_of(self.file.path());
        let disk = match statvfs(folder) {
            Ok(disk) => disk,
            Err(error) => return Some(error.to_string()),
        };
        if disk.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Some(format!("the disk of {} is read-only", folder.display()));
        }
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        (free < FREE_BYTES_MIN).then(|| {
            let folder = folder.display();
            format!("the disk of {folder} is full ({free} bytes are free): make room")
        })
    }
}

/// Writes a page with the content that it has.
fn probe(open: &mut Connection) -> rusqlite::Result<()> {
    let transaction = open.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}
