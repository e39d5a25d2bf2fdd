//! The orchestrator.
//!
//! A task is what the journal says of it and nothing else. [`TaskState`] is that, folded from
//! its events; [`TaskState::next`] decides, purely, what comes next; the loop in `lap` performs
//! it and writes down what came of it. Because every decision follows from the journal, a task
//! that was cut off anywhere goes on by reading its events and deciding again.
//!
//! | written before                  | what                                                   |
//! |---------------------------------|--------------------------------------------------------|
//! | anybody is told a task's id     | its creation and its first message                     |
//! | a tool runs                     | the answer that calls it, and that it is started       |
//! | the model sees a result         | the result                                             |
//! | anybody is told it has ended    | its terminal status, once                              |
//!
//! After a crash a finished call is not run again; one that was cut off is run again if that does
//! no harm, and otherwise the model is told that its outcome is unknown.

mod follow;
mod lap;
mod limits;
mod orchestrator;
mod state;
mod tools;

pub use follow::Follower;
pub use limits::LimitReached;
pub use orchestrator::{
    Delta, Models, NewTask, Orchestrator, OrchestratorError, TASKS_RUNNING_MAX, World,
};
pub use state::{Pending, ReplayError, Step, TaskState};
pub use tools::NoTools;
