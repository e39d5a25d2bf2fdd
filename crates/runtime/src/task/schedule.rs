//! When a task runs.
//!
//! | file        | subject                                  |
//! |-------------|------------------------------------------|
//! | `supervise` | starts runs, restarts after faults       |
//! | `run_slots` | which tasks run, and the queue for slots |
//! | `deadlines` | what happens when its time is over       |
//! | `deadline_clock` | whether a deadline has passed       |

pub(crate) mod deadline_clock;
pub(crate) mod deadlines;
pub(crate) mod run_slots;
pub(crate) mod supervise;
