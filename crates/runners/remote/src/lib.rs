//! The runner `loopback`: a task is worked on by another orchestrator, over HTTP.
//!
//! [`Loopback`] begins the task there under a key of its own, so it is begun once; follows its
//! events; and appends them to our task in the order they happened. Each append ends in a
//! `relayed` event that says how far it got, so whoever takes the task up again goes on from there:
//! after a broken connection, after a restart of either side, nothing is left out and nothing is
//! written twice.
//!
//! Its configuration is `{"peer": "NAME", "agent"?: "…", "model"?: "…"}`. What a name stands for,
//! an address and a token, is given by whoever makes the runner. A definition that came with a
//! project can name neither.
//!
//! # What is written down here
//!
//! | event there                                   | here                                            |
//! |-----------------------------------------------|-------------------------------------------------|
//! | `task_created`, the messages it began with    | not: they are ours                              |
//! | `message_appended`                            | as it is; that it waited, it waited there       |
//! | `state_changed`, `tool_started`, `tool_refused`, `usage_recorded`, `output_rejected` | as it is |
//! | `status_changed`, `running`                   | as it is                                        |
//! | `status_changed`, `input_required`            | the same, for nobody here: what it waits for is in its `detail`, with the peer and the task there. It is followed on |
//! | `status_changed`, terminal                    | as it is, and last                              |
//! | `approval_requested`, `approval_decided`      | not: the question is asked and answered there   |
//! | `message_queued`, `tool_requested`            | not: whoever said or offered it, is there       |
//! | `dispatched`, `awaited`, `handed_over`        | not: agents and tasks there are none of ours    |
//! | `compacted`                                   | not: it counts the messages there               |
//! | `relayed`                                     | not: it tells of a third orchestrator           |
//!
//! # What goes there
//!
//! | ours                                          | there                                           |
//! |-----------------------------------------------|-------------------------------------------------|
//! | what was said, with what was said before it   | `history` and `message`                         |
//! | tools, agents, limits, schema                 | the same                                        |
//! | the model and the scene                       | the same, unless `agent` or `model` say others  |
//! | canceled                                      | canceled, and followed to its end               |
//! | ended here for another reason                 | canceled                                        |
//! | paused, resumed                               | paused, resumed                                 |
//! | everything comes to rest                      | nothing: it goes on there                       |
//!
//! Tools that a client offered here are not offered there, and a message that is sent to our task
//! while it runs there does not cross over.

mod answer;
mod events;
mod follower;
mod loopback;
mod orders;
mod ours;
mod peer;
mod peers;
mod relay;
mod request;

pub use events::EVENT_BYTES_MAX;
pub use loopback::{Loopback, Persistence};
pub use ours::HISTORY_TASKS_MAX;
pub use peers::{LoopbackPeers, PeerError};
