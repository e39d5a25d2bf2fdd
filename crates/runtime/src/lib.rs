//! The orchestrator.
//!
//! A task is what the journal records of it. [`TaskState`] is folded from its events; [`next_action`]
//! decides, purely, what comes next; the loop in `task::step` performs it and records the outcome. Every
//! decision follows from the journal, so an interrupted task continues by reading its events and
//! deciding again.
//!
//! | before                          | the journal has                                        |
//! |---------------------------------|--------------------------------------------------------|
//! | a caller gets a task's id       | its creation and its first message                     |
//! | a tool runs                     | the answer that calls it, and the start of the call    |
//! | the model reads a result        | the result                                             |
//! | a caller learns of a task's end | its terminal status, once                              |
//!
//! After a crash a finished call is not run again. An interrupted call is run again if that does no
//! harm; otherwise the model reads that its outcome is unknown.

mod background;
mod budget;
mod byte_lru;
mod command_record;
mod deps;
mod dispatch;
mod inbox;
mod journal_writer;
mod orchestrator;
mod orchestrator_error;
mod runner;
mod services;
mod storage;
mod task;
mod watch;

pub use antiphon_core::{BudgetStatus, ORDERS, ScopeStatus, WindowStatus};
pub use budget::raise_limit::{ALLOWED_NANO_USD_MAX, LimitRaise};
pub use budget::spend_limits::{
    Budget, BudgetRefusal, BudgetScope, BudgetSpent, NoSpendLimits, SpendCeiling, SpendLimitSource,
};
pub use deps::{
    ApprovalPolicy, BreakerState, Dispatch, Models, OpenGate, OrchestratorSettings, RuntimeConfig,
    RuntimeDeps, TaskEnvironment, TaskEnvironments,
};
pub use dispatch::child_plan::AD_HOC;
pub use dispatch::external_tools::{EXTERNAL_RESULT_BYTES_MAX, EXTERNAL_TOOLS_MAX};
pub use dispatch::pending_call::{Outcomes, PendingCall, TaskOutcome};
pub use dispatch::refusal::DispatchRefusal;
pub use inbox::arrival::{
    Arrival, INTENT_BYTES_MAX, INTERACTION_BYTES_MAX, INTERACTION_IMAGE_BYTES_MAX,
    PAYLOAD_BYTES_MAX, Receipt, Rejection, SENDER_KEY_BYTES_MAX,
};
pub use inbox::input_permission::{TERMINAL_INPUT, TERMINAL_START, agent_start_rule};
pub use inbox::open_requests::{InboundRequest, OutboundRequest};
pub use inbox::peer_tools::{
    HOPS_MAX, REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX, REQUESTS_OPEN_MAX,
};
pub use inbox::quotas::{INBOX_BYTES_MAX, INBOX_MAX, INBOX_OF_SENDER_MAX};
pub use inbox::reading_order::{QUIET_MESSAGES_MAX, TURN_MESSAGES_BYTES_MAX, TURN_MESSAGES_MAX};
pub use inbox::residents::{is_resident, session_of};
pub use inbox::start_agent::{StartedAgent, TURNS_DEFAULT};
pub use inbox::task_message::TaskMessage;
pub use orchestrator::{Orchestrator, Recovered};
pub use orchestrator_error::OrchestratorError;
pub use storage::StorageStatus;
pub use task::control::approval::ApprovalRequests;
pub use task::control::attached::{AttachedTask, Conclusion, TaskWatch};
pub use task::control::create::AcceptedTask;
pub use task::control::new_task::{ImportedConversation, NewTask, PriorHistory};
pub use task::decide::{Action, UnansweredCall, next_action};
pub use task::limits::{
    DEPTH_DEFAULT, FAN_OUT_DEFAULT, HANDOVERS_MAX, LimitContext, LimitReached, LimitScope,
    TASKS_DEFAULT, Totals, cost,
};
pub use task::missing_model::NO_MODEL;
pub use task::outage::{ASKED_PAUSE_MAX, Outage, PAUSE_MAX};
pub use task::schedule::deadline_clock::DeadlineClock;
pub use task::schedule::run_slots::TASKS_RUNNING_MAX;
pub use task::state::conversation::Conversation;
pub use task::state::{ApprovalQuestion, ReplayError, StartedCall, TaskState, WakeCounters};
pub use task::step::output::check_schema;
pub use task::step::person_tools::{ASK_USER, SUBMIT_PLAN, TODO};
pub use task::step::tools::NoTools;
pub use watch::delta::{AnswerDelta, Delta, DeltaEvent, ToolDelta};
pub use watch::delta_watchers::{DeltaWatcher, WatchedDelta};
pub use watch::follower::Follower;
pub use watch::serialized::{Serialized, SerializedDelta, SerializedEvent};
