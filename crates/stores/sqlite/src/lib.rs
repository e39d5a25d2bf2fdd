//! The journal on SQLite: one file, one owner, no server.
//!
//! One thread writes. It writes all queued appends in one transaction and makes them durable with one
//! sync; each caller gets its answer only then. Readers have
//! connections of their own and do not wait for the writer, nor it for them; other processes may
//! read with [`SqliteJournal::open_read_only`], or copy with [`SqliteJournal::back_up`].
//! [`Restore`] replaces a journal by a backup.
//!
//! The events are the truth. Every other table is an index: written in the same transaction, and
//! rebuilt from the events when needed. Only the row of a task is complete then; what finds it by its session, agent
//! or status is written for many tasks at a time, and lists look at the newest tasks one by one.
//!
//! | table       | one row is                                        | removed when                 |
//! |-------------|---------------------------------------------------|------------------------------|
//! | `events`    | one event                                         |                              |
//! | `keys`      | the answer of an idempotency key                  |                              |
//! | `tasks`     | the summary of a task, and the state of its agent |                              |
//! | `sessions`  | a session: its first and its newest indexed task  |                              |
//! | `approvals` | positions of an approval's request and decision   |                              |
//! | `inbox`     | a queued message                                  | it is read, or its task ends |
//! | `checkpoints` | the state of a long task at one of its events   | the task ends                |
//! | `pruned`    | a task that was removed with all its other rows   |                              |
//!
//! | fault                                 | what happens                                          |
//! |---------------------------------------|-------------------------------------------------------|
//! | the process is killed                 | every answered append is in the file                  |
//! | the disk is full, read-only or gone   | `Unavailable`; nothing of the append is written       |
//! | the file is deleted or replaced       | `Unavailable`; its content is copied to `PATH.rescued-N` |
//! | another process owns the file         | [`OpenError::Owned`], with the id of that process     |
//! | the file is of an earlier version     | it is migrated, completely or not at all              |
//! | the file is of a later version        | [`OpenError::Later`]; it is not changed               |
//! | the file is empty or truncated, or only its log is there | [`OpenError::Damaged`]; it is not changed |
//! | the file is of another program        | [`OpenError::Damaged`]; it is not changed             |
//! | one event cannot be decoded           | `Corrupt` where it is read; all lists still work      |
//! | a backup or a restore is killed       | the old file is there, or the new one                 |
//! | the file is not a database, or damaged | [`OpenError::Damaged`], or `Corrupt` when it is read |

mod backup;
mod fault;
mod file;
mod index;
mod journal;
mod maintenance;
mod read_only;
mod reader;
mod row;
mod writer;

pub use backup::restore::{Restore, Restored};
pub use backup::{Backup, BackupError, Progress, Replace};
pub use file::header::APPLICATION_ID;
pub use file::owner::Owner;
pub use journal::{OpenError, SqliteJournal, SyncPolicy};
pub use maintenance::MaintenanceStep;
pub use maintenance::compact::Compacted;
pub use maintenance::prune::{PruneMode, PruneSelection, Pruned};
pub use maintenance::repair::Repaired;
pub use maintenance::verify::Verified;
pub use read_only::ReadOnlyJournal;
pub use reader::index_queries::LIST_ROWS_MAX;
pub use reader::page::{PAGE_BYTES_MAX, PAGE_EVENTS_MAX};
pub use writer::storage_check::FREE_BYTES_MIN;
pub use writer::task_head_cache::CACHED_TASKS_MAX;
pub use writer::{APPEND_BYTES_MAX, APPENDS_WAITING_MAX, BATCH_APPENDS_MAX};
