//! The journal on SQLite: one file, one owner, no server.
//!
//! One thread writes. Whatever is waiting when it comes round is written in one transaction and
//! made durable with one sync; each writer learns of its own append only then. Readers have
//! connections of their own and neither wait for the writer nor make it wait; other processes may
//! look on with [`SqliteJournal::open_read_only`], or copy it with [`SqliteJournal::back_up`].
//! [`Restore`] puts a copy in place of a journal.
//!
//! The events are the truth. What is kept beside them, so that a list is at hand without reading
//! them all, is written in the same transaction and can be made again from them:
//!
//! | table       | one row is                                        | until                        |
//! |-------------|---------------------------------------------------|------------------------------|
//! | `events`    | one event                                         |                              |
//! | `keys`      | the answer that an idempotency key was given      |                              |
//! | `tasks`     | one task at a glance                              |                              |
//! | `usage`     | what one task took of one model                   |                              |
//! | `sessions`  | a conversation: its first and its newest task     |                              |
//! | `approvals` | a question, where it was asked and answered       |                              |
//! | `agents`    | where the agent of a task stands                  | its task ends                |
//! | `inbox`     | a message that waits for its turn                 | it has it, or its task ends  |
//!
//! | what goes wrong                       | what happens                                          |
//! |---------------------------------------|-------------------------------------------------------|
//! | the process is killed                 | every append that was answered is there               |
//! | the disk is full, read-only or gone   | `Unavailable`; nothing of the append is written       |
//! | somebody else has the file open       | [`OpenError::Owned`], with the process that has it    |
//! | the file is of an earlier version     | it is brought up to date, whole or not at all         |
//! | the file is of a later version        | [`OpenError::Later`]; it is left as it is             |
//! | the file is a database of others'     | [`OpenError::Damaged`]; it is left as it is           |
//! | one event makes no sense              | `Corrupt` where it is read; all lists are there       |
//! | a backup or a restore is killed       | what was there before is there, or what was to be     |
//! | the file is no database, or damaged   | [`OpenError::Damaged`], or `Corrupt` when it is read  |

mod backup;
mod column;
mod fault;
mod header;
mod journal;
mod ledger;
mod lists;
mod matching;
mod owner;
mod page;
mod read_only;
mod reader;
mod rebuild;
mod rename;
mod restore;
mod schema;
mod seal;
mod snapshot;
mod spending;
mod staging;
mod standing;
mod stored_event;
mod tables;
mod task_row;
mod writer;

pub use backup::{Backup, BackupError, Progress, Replace};
pub use header::APPLICATION_ID;
pub use journal::{OpenError, SqliteJournal, Sync};
pub use lists::LIST_ROWS_MAX;
pub use page::{PAGE_BYTES_MAX, PAGE_EVENTS_MAX};
pub use read_only::ReadOnlyJournal;
pub use restore::{Restore, Restored};
pub use standing::TASKS_AT_HAND_MAX;
pub use writer::{APPEND_BYTES_MAX, APPENDS_WAITING_MAX, BATCH_APPENDS_MAX};
