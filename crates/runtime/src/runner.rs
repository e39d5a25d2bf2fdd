//! Tasks that run outside of this loop: in a runner, with the limits of their task.
//!
//! | file             | subject                         |
//! |------------------|---------------------------------|
//! | `remote`         | has a runner run a task         |
//! | `runner_journal` | the journal as a runner sees it |
//! | `bounded_model`  | the model as a runner calls it  |
//! | `choose_runner`  | which runner an agent gets      |

pub(crate) mod bounded_model;
pub(crate) mod choose_runner;
pub(crate) mod remote;
pub(crate) mod runner_journal;
