//! One task: its state, the decision about its next action, and the loop that performs it.
//!
//! Every decision follows from recorded events, so an interrupted task continues by reading them and deciding
//! again. Events are written before the action they announce is performed.
//!
//! | file        | subject                                        |
//! |-------------|------------------------------------------------|
//! | `state/`    | the state of a task, folded from its events    |
//! | `decide`    | which action comes next; pure                  |
//! | `step/`     | the loop: decide, record, act; and the actions |
//! | `limits`    | limits of a task and its tree                  |
//! | `outage`    | the wait for a model that does not answer      |
//! | `missing_model` | the wait for a process that can call it    |
//! | `schedule/` | when a task runs: starts, slots, deadlines     |
//! | `control/`  | what callers do: create, wait, approve, cancel |

pub(crate) mod control;
pub(crate) mod decide;
pub(crate) mod limits;
pub(crate) mod missing_model;
pub(crate) mod outage;
pub(crate) mod schedule;
pub(crate) mod state;
pub(crate) mod step;
