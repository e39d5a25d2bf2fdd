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

mod admission;
mod allowance;
mod arrival;
mod ask;
mod begin;
mod bounded;
mod budget;
mod call;
mod call_agent;
mod cancel;
mod children;
mod compact;
mod conclude;
mod conversation;
mod deadlines;
mod decide;
mod decision;
mod delta;
mod dispatch;
mod external;
mod flight;
mod flush;
mod follow;
mod inbox;
mod inner;
mod kin;
mod lap;
mod lifecycle;
mod limits;
mod mailroom;
mod new_task;
mod orchestrator;
mod orchestrator_error;
mod output;
mod owed;
mod own_pages;
mod peers;
mod plan;
mod purse;
mod record;
mod refusal;
mod remote;
mod requests;
mod rest;
mod roster;
mod running;
mod runtimes;
mod saying;
mod state;
mod supervisor;
mod tail;
mod tools;
mod tree;
mod world;

pub use allowance::{ALLOWED_NANO_USD_MAX, Allowance};
pub use antiphon_core::ORDERS;
pub use antiphon_core::{BudgetStatus, ScopeStatus, WindowStatus};
pub use arrival::{
    Arrival, INTENT_BYTES_MAX, INTERACTION_BYTES_MAX, PAYLOAD_BYTES_MAX, Receipt, Rejection,
    SENDER_KEY_BYTES_MAX, Wake,
};
pub use budget::{
    Budget, BudgetRefusal, BudgetScope, BudgetSpent, NoSpendLimits, RuntimeConfig, SpendLimitSource,
};
pub use conclude::{AttachedTask, Concluded};
pub use conversation::Conversation;
pub use decide::{Pending, Step, next};
pub use delta::{Delta, DeltaEvent, ToolDelta};
pub use external::{EXTERNAL_RESULT_BYTES_MAX, EXTERNAL_TOOLS_MAX};
pub use flight::{Outcome, Outcomes, PendingCall};
pub use follow::Follower;
pub use inbox::{ALONG_MAX, TAKEN_BYTES_MAX, TAKEN_MAX};
pub use limits::{
    DEPTH_DEFAULT, FAN_OUT_DEFAULT, HANDOVERS_MAX, LimitContext, LimitReached, Scope,
    TASKS_DEFAULT, Totals, cost,
};
pub use mailroom::{INBOX_BYTES_MAX, INBOX_MAX, INBOX_OF_SENDER_MAX};
pub use new_task::{ImportedConversation, NewTask, PriorHistory};
pub use orchestrator::{Orchestrator, Recovered};
pub use orchestrator_error::OrchestratorError;
pub use output::check_schema;
pub use owed::{InboundRequest, OutboundRequest};
pub use peers::{HOPS_MAX, REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX, REQUESTS_OPEN_MAX};
pub use plan::AD_HOC;
pub use refusal::Refusal;
pub use roster::{Started, TURNS_DEFAULT, is_resident, session_of};
pub use running::TASKS_RUNNING_MAX;
pub use saying::TaskMessage;
pub use state::{Question, ReplayError, TaskState, Woken};
pub use tail::SerializedEvent;
pub use tools::NoTools;
pub use world::{ApprovalPolicy, Dispatch, Models, OpenGate, RuntimeDeps, Settings};
