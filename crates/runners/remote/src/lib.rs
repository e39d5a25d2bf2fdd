//! The runner `loopback`: another orchestrator, a *peer*, works on a task over HTTP.
//!
//! [`RemoteRunner`] creates a task at the peer under an idempotency key, so there is one. It follows the
//! events of that remote task and appends them to the local task in order. Each append ends with a
//! `relayed` event that holds the number of the last remote event. The next run continues after it: a
//! broken connection or a restart of either side neither loses nor repeats an event.
//!
//! The configuration is `{"peer"?: "NAME", "agent"?: "…", "model"?: "…"}`; without `peer` it is the only one. The address and the token of a
//! peer come from the user's configuration ([`Peers`]). A definition that came with a project can name
//! neither.
//!
//! # Remote events in the local journal
//!
//! | remote event                                  | local event                                     |
//! |-----------------------------------------------|-------------------------------------------------|
//! | `task_created`, the messages it began with    | none: the local task has them                   |
//! | `message_appended`                            | the same, without the id of its queue entry     |
//! | `state_changed`, `tool_started`, `tool_refused`, `usage_recorded`, `output_rejected` | the same |
//! | `status_changed`, `running`                   | the same                                        |
//! | `status_changed`, `input_required`            | the same, without `waiting_for`: `detail` holds it, with the peer and the remote task. The runner keeps following |
//! | `status_changed`, terminal                    | the same, and last                              |
//! | `approval_requested`, `approval_decided`      | none: the peer's user decides                   |
//! | `message_queued`, `tool_requested`            | none: the sender or the client is at the peer   |
//! | `dispatched`                                  | none: `relayed` lists the tasks of the peer below it |
//! | `awaited`, `handed_over`                      | none: these agents and tasks are the peer's     |
//! | `compacted`                                   | none: it counts remote messages                 |
//! | `relayed`                                     | none: it is about a third orchestrator          |
//!
//! # The local task at the peer
//!
//! | local                                         | remote                                          |
//! |-----------------------------------------------|-------------------------------------------------|
//! | the last message, and the messages before it  | `message` and `history`, as a model here would read them |
//! | tools, agents, limits, schema                 | the same                                        |
//! | model and system prompt                       | the same, unless `agent` or `model` are configured |
//! | canceled                                      | canceled, and followed to its end; when the peer is away, the orchestrator cancels it later |
//! | ended for another reason                      | canceled, in the same way                       |
//! | a message to it                               | a message to it, once; refused when the peer is away |
//! | the peer restarts                             | waits until it is followed again                |
//! | waits while the peer is away                  | goes on; followed again from the last relayed event |
//! | paused, resumed                               | paused, resumed                                 |
//! | the orchestrator shuts down                   | nothing: the remote task goes on                |
//!
//! The peer does not get tools that a client offered here.

mod follower;
mod peer;
mod peers;
mod relay;
mod runner;
mod task_request;

pub use antiphon_client::{EVENT_BYTES_MAX, RetryPolicy};
pub use peers::{PeerError, Peers};
pub use runner::RemoteRunner;
