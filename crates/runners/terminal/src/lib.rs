//! The runner `terminal`: command-line agents in terminals of their own.
//!
//! [`TerminalRunner`] works on a task by running a program (`claude`, `codex`, `bash`, anything that
//! the user's trusted profiles name) in a pseudo terminal. The task lasts as long as the program. A
//! message for the task is typed in once the screen is still; people look at the screen and type
//! themselves with [`attach()`].
//!
//! | what goes wrong                         | what happens                                       |
//! |-----------------------------------------|----------------------------------------------------|
//! | the program is not there                | `Refused`, and nothing is run                      |
//! | it ends with an error, or is killed     | it is begun again by its profile's policy, or the task has failed with its last words |
//! | it leaves processes behind              | they are ended before the task is                  |
//! | the task is canceled, or all rests      | the program and all it started are asked to end, killed after [`GRACE`], and gone before `run` returns |
//! | this process is killed                  | the guard notices, and everything is gone          |
//! | asked again for a task that was cut off | counts as a failure of the program: begun again by policy, or failed as `interrupted` |
//! | it writes without end                   | the screen is bounded, the recording is rotated    |
//! | it does not read what is typed          | what is typed waits, in a bounded queue            |
//! | somebody who watches is slow            | they skip to the newest screen; nobody waits for them |
//! | it sends sequences that could do harm   | watchers get the screen drawn anew, never its bytes |
//! | a message is written down, and then everything is killed | it is not typed again: at most once |
//!
//! Nothing of an agent's own names a command: its config names a profile, and profiles are the user's.

mod attach;
mod command_line;
mod context;
mod door;
mod guard;
mod keyboard;
mod ledger;
mod paint;
mod place;
mod process;
mod profile;
mod pty;
mod pump;
mod recording;
mod runner;
mod screen;
mod settings;
mod setup;
mod size;
mod typing;
mod wire;

pub use attach::{AttachError, Attachment, DetachKey, DetachKeyError, Left, attach};
pub use context::CONTEXT_BYTES_MAX;
pub use door::{WATCHERS_MAX, Watching};
pub use guard::{GRACE, guard_main};
pub use place::{PLACES_KEPT_MAX, socket_path};
pub use profile::{
    BASH, CLAUDE_CODE, CODEX, QUIET_MS_DEFAULT, RESTARTS_MAX, Restart, SUBMIT_DEFAULT,
    TerminalProfile,
};
pub use recording::RECORDING_BYTES_MAX;
pub use runner::{LAST_WORDS_BYTES_MAX, TERMINALS_MAX, TerminalRunner};
pub use settings::{GuardCommand, SettingsError, TerminalSettings};
pub use size::{COLUMNS_MAX, ROWS_MAX, Size};
pub use typing::TYPED_BYTES_MAX;
