//! Wire types of the native HTTP API, shared by the server and its client.
//!
//! Each type is the JSON body or the query string of one route. A type holds no behavior
//! beyond building and reading itself: the server validates, the client sends. The field
//! comments are the API reference: with the feature `schema` they become the descriptions in
//! `docs/openapi.json`. Domain types that cross the wire unchanged (`TaskSummary`, `Approval`,
//! `Event`, `ErrorResponse` …) live in `antiphon-core`.
//!
//! | module             | routes                                                            |
//! |--------------------|-------------------------------------------------------------------|
//! | [`task`]           | `/v1/tasks`, `/v1/tasks/{id}`, `…/tree`, `…/rest`                 |
//! | [`task_message`]   | `/v1/tasks/{id}/messages`, `…/tool_results`                       |
//! | [`task_diff`]      | `/v1/tasks/{id}/diff`                                             |
//! | [`event_query`]    | `/v1/tasks/{id}/events`, `/v1/events`, `/v1/journal`              |
//! | [`agent`]          | `/v1/agents`, `/v1/agents/{name}`, `/v1/agents/status`, `…/start`, `…/stop` |
//! | [`inbox`]          | `/v1/agents/{name}/inbox`, `/v1/inbox`                            |
//! | [`request_status`] | `/v1/requests/{id}`                                               |
//! | [`run`]            | `/v1/runs`                                                        |
//! | [`approval`]       | `/v1/approvals`, `/v1/approvals/{id}`                             |
//! | [`session`]        | `/v1/sessions`, `/v1/sessions/{id}`, `…/fork`                     |
//! | [`budget`]         | `/v1/budget/allow`                                                |
//! | [`usage`]          | `/v1/usage`                                                       |

pub mod agent;
pub mod agent_change;
pub mod approval;
pub mod budget;
pub mod event_query;
pub mod inbox;
pub mod request_status;
pub mod run;
pub mod session;
pub mod task;
pub mod task_diff;
pub mod task_message;
pub mod usage;

pub use agent::{
    AgentDetail, AgentList, AgentOrigin, AgentPresence, AgentProblem, AgentStarted, AgentStopped,
    CreateAgent, ImportedFrom, PresenceQuery,
};
pub use agent_change::AgentChange;
pub use approval::{ApprovalList, ApprovalQuery, DecideApproval};
pub use budget::AllowSpending;
pub use event_query::{JournalEventQuery, JournalPage, JournalPageQuery, TaskEventQuery};
pub use inbox::{
    InboxPage, InboxQuery, QueuedInteraction, REQUEST_TIMEOUT_S_MAX, Receipt, RequestBody,
    SendInteraction,
};
pub use request_status::{RequestState, RequestStatus, RequestWaitQuery};
pub use run::{RunStarted, RunTarget, StartRun, VERSION};
pub use session::{SessionDetail, SessionFile, SessionImported, SessionList, SessionQuery};
pub use task::{
    CreateTask, HISTORY_MESSAGES_MAX, LISTED_MAX, NAMES_MAX, REST_WAIT_S_MAX, TaskAccepted,
    TaskDetail, TaskPage, TaskQuery, TaskRest, TaskTree, TaskWaitQuery,
};
pub use task_diff::{DiffQuery, FileChange, TaskDiff};
pub use task_message::{MessageAccepted, SendMessage, SendToolResult};
pub use usage::{UsageBy, UsageQuery, UsageReport, UsageRow};
