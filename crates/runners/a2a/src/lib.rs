//! The runner `a2a`: a remote agent that speaks the `Agent2Agent` protocol (A2A) 1.0 works on a task.
//!
//! [`A2aRunner`] sends the message of a task with a `messageId` that is the id of the task, so that an agent that knows
//! the id starts the work once. Then it follows the remote task: by its stream, and by `GetTask` where there is no stream
//! or it has ended. What is recorded here comes with a `relayed` event that names the remote task, and with a *note* in
//! the status of which messages were recorded. The next run continues from there.
//!
//! The configuration is `{"peer"?: "NAME"}`; without `peer` it is the only one. Addresses and tokens come from the
//! user's settings ([`RemoteAgents`]); a definition that came with a project can name neither.
//!
//! | remote                                        | local                                           |
//! |-----------------------------------------------|-------------------------------------------------|
//! | chunks of the first artifact                  | live text                                       |
//! | messages of the agent, in a status or history | `message_appended`, once for each id            |
//! | `SUBMITTED`, `WORKING`                        | `running`                                       |
//! | `INPUT_REQUIRED`, `AUTH_REQUIRED`             | `input_required`; the detail has the question. A message to the task answers |
//! | `COMPLETED`                                   | `completed` with the text of the artifacts      |
//! | `FAILED`, `REJECTED`                          | `failed` as `remote_failed`, `refused`          |
//! | `CANCELED`                                    | `canceled`                                      |
//! | messages of role user                         | nothing: they came from here                    |
//!
//! | local                      | remote                                                             |
//! |----------------------------|--------------------------------------------------------------------|
//! | the last message           | the message; the messages before it, as text, in a new context     |
//! | the next task of a session | the same `contextId`                                               |
//! | a message to the task      | a message with `taskId`; its id is the `messageId`                 |
//! | canceled, or ended         | `CancelTask`, repeated until it is confirmed                       |
//! | paused, interrupted        | nothing: A2A has no pause. It is followed again after the resume   |
//! | limits, tools, agents      | nothing: the agent has its own. The time limit holds here          |
//!
//! Everything of a remote agent is bounded, and nothing of it is an instruction to this program.

mod address;
mod call;
mod card;
mod card_signature;
mod connection;
mod event_stream;
mod failure;
mod follower;
mod note;
mod part_text;
mod question;
mod remote_agents;
mod remote_work;
mod request;
mod runner;

pub use antiphon_client::RetryPolicy;
pub use remote_agents::{RemoteAgentConfig, RemoteAgentError, RemoteAgents};
pub use runner::{A2A_RUNNER, A2aRunner};
