//! Tasks that run outside of this loop: in a runner, with the limits of their task.
//!
//! | file             | subject                         |
//! |------------------|---------------------------------|
//! | `run_in_runner`  | has a runner run a task         |
//! | `runner_journal` | the journal as a runner sees it |
//! | `answer_display` | the text that is being written  |
//! | `bounded_model`  | the model as a runner calls it  |
//! | `choose_runner`  | which runner an agent gets      |
//! | `peer_cancel`    | cancellations for a peer        |
//! | `peer_message`   | messages to a task on a peer    |
//! | `followed`       | tasks that a peer follows       |
//! | `held_at_peer`   | what tasks wait for on a peer   |

pub(crate) mod answer_display;
pub(crate) mod bounded_model;
pub(crate) mod choose_runner;
pub(crate) mod followed;
pub(crate) mod held_at_peer;
pub(crate) mod peer_cancel;
pub(crate) mod peer_message;
pub(crate) mod run_in_runner;
pub(crate) mod runner_journal;
