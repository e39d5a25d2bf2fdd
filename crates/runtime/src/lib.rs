//! The orchestrator.
//!
//! A task is what the journal says of it and nothing else. [`TaskState`] is that, folded from
//! its events; [`next`] decides, purely, what comes next; the loop in `lap` performs
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

mod budget;
mod command_record;
mod deps;
mod dispatch;
mod inbox;
mod orchestrator;
mod orchestrator_error;
mod runner;
mod services;
mod task;
mod watch;

pub use antiphon_core::ORDERS;
pub use budget::allow::{ALLOWED_NANO_USD_MAX, Allowance, BudgetStatus, ScopeStatus, WindowStatus};
pub use budget::spend_limits::{
    Budget, BudgetRefusal, BudgetScope, BudgetSpent, NoSpendLimits, RuntimeConfig, SpendLimitSource,
};
pub use deps::{ApprovalPolicy, Dispatch, Models, OpenGate, RuntimeDeps, Settings};
pub use dispatch::external_tools::{EXTERNAL_RESULT_BYTES_MAX, EXTERNAL_TOOLS_MAX};
pub use dispatch::pending_call::{Outcome, Outcomes, PendingCall};
pub use dispatch::plan::AD_HOC;
pub use dispatch::refusal::Refusal;
pub use inbox::arrival::{
    Arrival, INTENT_BYTES_MAX, INTERACTION_BYTES_MAX, PAYLOAD_BYTES_MAX, Receipt, Rejection,
    SENDER_KEY_BYTES_MAX, Wake,
};
pub use inbox::open_requests::{InboundRequest, OutboundRequest};
pub use inbox::peer_tools::{
    HOPS_MAX, REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX, REQUESTS_OPEN_MAX,
};
pub use inbox::quotas::{INBOX_BYTES_MAX, INBOX_MAX, INBOX_OF_SENDER_MAX};
pub use inbox::reading_order::{ALONG_MAX, TAKEN_BYTES_MAX, TAKEN_MAX};
pub use inbox::residents::{Started, TURNS_DEFAULT, is_resident, session_of};
pub use inbox::task_message::TaskMessage;
pub use orchestrator::{Orchestrator, Recovered};
pub use orchestrator_error::OrchestratorError;
pub use task::attached::{AttachedTask, Concluded};
pub use task::conversation::Conversation;
pub use task::decide::{Pending, Step, next};
pub use task::limits::{
    DEPTH_DEFAULT, FAN_OUT_DEFAULT, HANDOVERS_MAX, LimitContext, LimitReached, Scope,
    TASKS_DEFAULT, Totals, cost,
};
pub use task::new_task::{ImportedConversation, NewTask, PriorHistory};
pub use task::output::check_schema;
pub use task::run_slots::TASKS_RUNNING_MAX;
pub use task::state::{Question, ReplayError, TaskState, Woken};
pub use task::tools::NoTools;
pub use watch::delta::{Delta, DeltaEvent, ToolDelta};
pub use watch::follower::Follower;
pub use watch::recent_events::SerializedEvent;
