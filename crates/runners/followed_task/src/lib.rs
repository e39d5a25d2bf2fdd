//! The local side of a task that another orchestrator works on and a runner here follows.
//!
//! [`LocalTask`] is read from the journal: how the task began, what is relayed of the remote one, and which commands
//! ([`ControlCommand`]) arrived here since. The runners for each protocol share it.

mod control;
mod local_task;
mod mark;

pub use control::ControlCommand;
pub use local_task::{LocalTask, RUNNER_NOTE};
pub use mark::add_mark;
