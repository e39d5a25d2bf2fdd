//! task.

pub(crate) mod approval;
pub(crate) mod ask_model;
pub(crate) mod attached;
pub(crate) mod call_tools;
pub(crate) mod cancel;
pub(crate) mod compact;
pub(crate) mod conversation;
pub(crate) mod create;
pub(crate) mod deadlines;
pub(crate) mod decide;
pub(crate) mod flush;
pub(crate) mod limits;
pub(crate) mod new_task;
pub(crate) mod output;
pub(crate) mod run_slots;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod tools;
pub(crate) mod wait;
