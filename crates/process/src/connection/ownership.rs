//! The role of a process for the project's journal: its owner, or a client of its owner, also after the owner was
//! killed (`attached_task.rs` notices that). Whichever process first needs the journal holds its lock; every other one
//! reaches it through its socket.
//!
//! | the lock is | and the socket              | then                                                          |
//! |-------------|-----------------------------|---------------------------------------------------------------|
//! | free        |                             | this process takes it, whatever file an owner before left     |
//! | held        | is answered                 | this process is a client                                      |
//! | held        | is missing or refuses       | looks again: the owner starts, or is about to end             |
//! | held        | accepts and does not answer | looks again, and fails in the end: the owner may be stopped   |

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use antiphon_project::project::Project;
use antiphon_sqlite::SqliteJournal;

use super::{ProjectServer, journal_owner};
use antiphon_project::error::ProjectError;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// The lock of the process that is the next owner, in the state folder.
const NEXT_OWNER: &str = "next-owner.lock";

/// How long it takes at most to tell a reservation from looks at it.
const RESERVATION_WAIT: Duration = Duration::from_secs(1);

/// How long an owner may take to answer.
const OWNER_WAIT: Duration = Duration::from_secs(10);

/// What this process is to the journal.
pub enum Ownership {
    /// It holds the lock.
    Owner(SqliteJournal),
    /// Another process does.
    Client(ProjectServer),
}

impl Ownership {
    /// Takes the journal, or connects to its owner.
    pub async fn find(project: &Project) -> Result<Self, ProjectError> {
        Self::find_with(project, None).await
    }

    /// The same for the process that has reserved the journal.
    pub async fn find_with(
        project: &Project,
        reservation: Option<&Reservation>,
    ) -> Result<Self, ProjectError> {
        let end = Instant::now() + OWNER_WAIT;
        loop {
            let is_reserved = reservation.is_none() && Reservation::exists(project);
            if !is_reserved && let Some(journal) = project.try_journal()? {
                return Ok(Self::Owner(journal));
            }
            if let Some(server) = ProjectServer::find(project).await? {
                return Ok(Self::Client(server));
            }
            if Instant::now() > end {
                return Err(silent_owner(project));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The process that owns the journal.
    pub(crate) fn owner_id(project: &Project) -> Option<u32> {
        journal_owner::owner_of(&project.journal_path())
    }

    /// The process that owns the journal, if it is stopped: it answers when it goes on.
    pub fn stopped_owner(project: &Project) -> Option<u32> {
        let owner = journal_owner::owner_of(&project.journal_path())?;
        journal_owner::is_stopped(owner).then_some(owner)
    }
}

/// The journal is reserved for this process: no other takes it when its owner ends. The system ends the reservation
/// with the process.
pub struct Reservation {
    _lock: File,
}

impl Reservation {
    /// Reserves the journal; `None` when another process has done so.
    pub async fn new(project: &Project) -> Result<Option<Self>, ProjectError> {
        project.prepare()?;
        let fault = |error: io::Error| ProjectError::Unavailable(format!("{NEXT_OWNER}: {error}"));
        let folder = File::open(project.state()).map_err(fault)?;
        let lock = antiphon_private_file::open_lock_at(folder, NEXT_OWNER).map_err(fault)?;
        let end = Instant::now() + RESERVATION_WAIT;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: lock })),
                // Other processes hold it for a moment while they look whether it is held.
                Err(TryLockError::WouldBlock) if Instant::now() < end => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(fault(error)),
            }
        }
    }

    /// Whether a process has reserved it.
    pub(crate) fn exists(project: &Project) -> bool {
        let lock = File::open(project.state().join(NEXT_OWNER));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }
}

/// Why the owner cannot be used.
fn silent_owner(project: &Project) -> ProjectError {
    let Some(owner) = journal_owner::owner_of(&project.journal_path()) else {
        return ProjectError::Unavailable(
            "the journal of this project is taken again and again: try again".to_owned(),
        );
    };
    if journal_owner::is_stopped(owner) {
        return ProjectError::Unavailable(format!(
            "process {owner} works on the tasks of this project, and it is stopped: continue it with `kill -CONT \
             {owner}`, or end it"
        ));
    }
    ProjectError::Unavailable(format!(
        "process {owner} needs the journal of this project alone, or does not answer: try again when it is done, or \
         end it"
    ))
}
