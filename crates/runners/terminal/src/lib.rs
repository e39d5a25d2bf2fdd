//! The runner `terminal`: command-line agents in terminals of their own.
//!
//! [`TerminalRunner`] executes a task by running a program (`claude`, `codex`, `bash`, any program
//! of the user's trusted profiles) in a pseudo terminal. The task lasts as long as the program. A
//! message for the task is typed when the program waits at its prompt, and when a person sent or allowed it; users watch the screen and type with
//! [`attach()`].
//!
//! | case                                    | outcome                                            |
//! |-----------------------------------------|----------------------------------------------------|
//! | the program does not exist              | `Refused`, and nothing is run                      |
//! | it ends with an error, or is killed     | it is restarted by its profile's policy, or the task fails with its last output |
//! | it leaves processes                     | they are ended before the task ends                |
//! | the task is canceled, or the server stops | the program and its processes get SIGTERM, SIGKILL after [`GRACE`], and are gone before `run` returns |
//! | this process is killed                  | the guard notices, and every process ends          |
//! | the task was interrupted and is run again | counts as a failure of the program: restarted by policy, or failed as `interrupted` |
//! | it writes without end                   | the screen is bounded, the recording is rotated    |
//! | it does not read its input              | input waits, in a bounded queue                    |
//! | a watcher is slow                       | it skips to the newest screen; no other waits for it |
//! | it sends harmful escape sequences       | watchers get the screen drawn anew, never its bytes |
//! | it shows a dialog, or no known prompt   | messages wait in the inbox, and the status says why |
//! | a message is not from a person          | a person is asked first, and it waits in the inbox  |
//! | a crash after a message is recorded     | the message is not typed again: at most once       |
//!
//! An agent cannot name a command: its config names a profile, and profiles are the user's.

mod attach;
mod command_line;
mod guard;
mod process;
mod profile;
mod pty;
mod runner;
mod settings;
mod setup;
mod task;
mod watch;

pub use attach::{AttachError, Attachment, DetachKey, DetachKeyError, DetachReason, attach};
pub use guard::{GRACE, guard_main};
pub use profile::{
    BASH, CLAUDE_CODE, CODEX, QUIET_MS_DEFAULT, READY_LINES_DEFAULT, RESTARTS_MAX, Restart,
    SUBMIT_DEFAULT, TerminalProfile,
};
pub use pty::recording::RECORDING_BYTES_MAX;
pub use pty::size::{COLUMNS_MAX, ROWS_MAX, Size};
pub use pty::typing::TYPED_BYTES_MAX;
pub use runner::{RESULT_BYTES_MAX, TERMINALS_MAX, TerminalRunner};
pub use settings::{GuardCommand, SettingsError, TerminalSettings};
pub use task::context::CONTEXT_BYTES_MAX;
pub use task::folder::{TASK_FOLDERS_MAX, socket_path};
pub use watch::{WATCHERS_MAX, Watching};
