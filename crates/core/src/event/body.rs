//! The list of events. Their fields are in this folder, by subject.
//!
//! | file                  | subject                                                     |
//! |-----------------------|-------------------------------------------------------------|
//! | `task_events`         | a task is created, restored, and changes its status         |
//! | `conversation_events` | messages of a task, and their summaries                     |
//! | `inbox_events`        | arrivals in an inbox, and requests between agents           |
//! | `tool_events`         | tool calls, and what people decide about them               |
//! | `dispatch_events`     | work that other tasks and agents do for a task              |
//! | `spending_events`     | used tokens, and raised spend limits                        |
//! | `waiting_for`         | why a task does not go on                                   |

use serde::Serialize;

use super::EventError;

/// Structs of events. Every field is public.
macro_rules! event_structs {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$field_doc:meta])* $field:ident : $type:ty, )* } )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                $(
                    $(#[$field_doc])*
                    pub $field: $type,
                )*
            }
        )*
    };
}

mod conversation_events;
mod dispatch_events;
mod inbox_events;
mod spending_events;
mod task_events;
mod tool_events;
mod waiting_for;

pub use self::conversation_events::{Compacted, MessageAppended};
pub use self::dispatch_events::{Awaited, Awaiting, Dispatched, HandedOver, Relayed};
pub use self::inbox_events::{MessageQueued, Replied, RequestSent};
pub use self::spending_events::{BudgetRaised, Purpose, UsageRecorded};
pub use self::task_events::{
    HistoryRef, ImportedTimes, OutputRejected, PeerCancel, StateChanged, StatusChanged,
    TaskCreated, TaskRestored, TodoChanged,
};
pub use self::tool_events::{
    ApprovalDecided, ApprovalRequested, ToolRefused, ToolRequested, ToolStarted,
};
pub use self::waiting_for::WaitingFor;

macro_rules! events {
    ($( $(#[$doc:meta])* $name:ident $method:ident = $word:literal; )*) => {
        /// What happened.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(untagged)]
        #[expect(
            clippy::large_enum_variant,
            reason = "the largest is the creation of a task, which every task begins with"
        )]
        pub enum EventBody {
            $( $(#[$doc])* $name($name), )*
        }

        $(
            impl From<$name> for EventBody {
                fn from(body: $name) -> Self {
                    Self::$name(body)
                }
            }
        )*

        /// Handles events by type. Every method does nothing unless it is implemented, so that a
        /// new event changes only the visitors that handle it.
        pub trait EventVisitor {
            $(
                $(#[$doc])*
                fn $method(&mut self, event: &$name) {
                    let _ = event;
                }
            )*
        }

        impl EventBody {
            /// Every `type` of an event.
            pub const TYPES: &'static [&'static str] = &[$( $word, )*];

            /// The `type` of the event in JSON.
            pub fn event_type(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $word, )*
                }
            }

            /// Calls the method of the visitor for this event.
            pub fn visit(&self, visitor: &mut impl EventVisitor) {
                match self {
                    $( Self::$name(event) => visitor.$method(event), )*
                }
            }

            /// Reads the `data` of an event of type `word`.
            pub fn parse(word: &str, data: &str) -> Result<Self, EventError> {
                let malformed = |error: serde_json::Error| EventError::Malformed {
                    event_type: word.to_owned(),
                    reason: error.to_string(),
                };
                match word {
                    $( $word => serde_json::from_str(data).map(Self::$name).map_err(malformed), )*
                    _ => Err(EventError::UnknownType { found: word.to_owned() }),
                }
            }
        }
    };
}

events! {
    /// The orchestrator accepted a task. Always the first event of its task.
    TaskCreated task_created = "task_created";
    /// The task came from a file with `antiphon restore`. Its route, its runner, the rules that were
    /// allowed for it, the answers to its approvals and its open requests no longer count, and who sent the
    /// messages before this event is unknown: another user may have made them.
    TaskRestored task_restored = "task_restored";
    /// A task got a new status. No event of the task follows a terminal status.
    StatusChanged status_changed = "status_changed";
    /// A live agent changed its state.
    StateChanged state_changed = "state_changed";
    /// A message joined the conversation.
    MessageAppended message_appended = "message_appended";
    /// An interaction arrived and waits in the inbox of the task.
    MessageQueued message_queued = "message_queued";
    /// A tool call sends a request to another agent. The orchestrator delivers it under this id
    /// after this event.
    RequestSent request_sent = "request_sent";
    /// The task answers a request. The orchestrator delivers the answer after this event.
    Replied replied = "replied";
    /// A tool call needs the approval of a person, or asks a person a question.
    ApprovalRequested approval_requested = "approval_requested";
    /// A person decided about an approval, or it expired.
    ApprovalDecided approval_decided = "approval_decided";
    /// A tool call was not allowed to run.
    ToolRefused tool_refused = "tool_refused";
    /// A tool call starts. Its side effects may have begun.
    ToolStarted tool_started = "tool_started";
    /// A tool call goes to the client that offered the tool.
    ToolRequested tool_requested = "tool_requested";
    /// A tool call dispatches agents. The orchestrator creates their tasks under these ids after
    /// this event.
    Dispatched dispatched = "dispatched";
    /// A tool call waits for tasks that were dispatched before.
    Awaited awaited = "awaited";
    /// Another agent takes over the task: its result is the result of the task.
    HandedOver handed_over = "handed_over";
    /// A runner copied the events of a remote task up to this one.
    Relayed relayed = "relayed";
    /// A model call used tokens.
    UsageRecorded usage_recorded = "usage_recorded";
    /// The spend limits of this day and its month were raised.
    BudgetRaised budget_raised = "budget_raised";
    /// The result of the model does not fit the output schema of the task. The model tries again.
    OutputRejected output_rejected = "output_rejected";
    /// The agent replaced the list of things to do that it keeps.
    TodoChanged todo_changed = "todo_changed";
    /// From here on the model reads a summary in place of the older messages. The journal keeps
    /// them all.
    Compacted compacted = "compacted";
}
