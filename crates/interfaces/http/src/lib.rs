//! The HTTP door of the orchestrator.
//!
//! [`serve()`] takes [`Listeners`], what stands behind the door and a signal to end. It parses,
//! authenticates, builds a typed value and hands it to the [`Orchestrator`]; it decides nothing
//! itself. What it refuses, it refuses with an
//! [`ErrorResponse`](antiphon_core::ErrorResponse), whatever went wrong and wherever.
//!
//! | route                             | does                                                      |
//! |-----------------------------------|-----------------------------------------------------------|
//! | `GET /health`                     | `healthy`, or 503 `unhealthy`; open                       |
//! | `GET /health/ready`               | `ready`, or 503 `unhealthy`; open                         |
//! | `GET /health/live`                | `alive`; open                                             |
//! | `GET /openapi.json`, `/docs`      | what this API is, for programs and for people; open       |
//! | `GET /metrics`                    | what is counted, for Prometheus                           |
//! | `POST /v1/tasks`                  | accepts a task: 201, or 200 for a key that was used       |
//! | `GET /v1/tasks`                   | tasks, page by page, the newest first                     |
//! | `GET /v1/tasks/{id}`              | one task at a glance, with its result                     |
//! | `GET /v1/tasks/{id}/tree`         | it and everything below it, the oldest first              |
//! | `GET /v1/tasks/{id}/rest`         | waits until nothing of it goes on without somebody        |
//! | `GET /v1/tasks/{id}/events`       | its events as they were and as they come                  |
//! | `GET /v1/tasks/{id}/diff`         | what its file tools changed                               |
//! | `GET /v1/events`                  | events of the whole journal                               |
//! | `POST /v1/invocations`            | dispatches 1..N agents                                    |
//! | `GET /v1/agents`                  | who is defined                                            |
//! | `POST /v1/agents`                 | defines an agent; also `PUT` and `DELETE` of `…/{name}`    |
//! | `GET /v1/sessions`                | conversations; `…/{id}` with what was said                |
//! | `GET /v1/sessions/{id}/export`    | one as a session file                                     |
//! | `POST /v1/sessions`               | keeps the conversation of a session file                  |
//! | `POST /v1/sessions/{id}/fork`     | branches off                                              |
//! | `POST /v1/tasks/{id}/cancel`      | ends it and everything below it                           |
//! | `POST /v1/tasks/{id}/pause`       | lets it rest                                              |
//! | `POST /v1/tasks/{id}/resume`      | lets it go on                                             |
//! | `POST /v1/tasks/{id}/messages`    | says something to it                                      |
//! | `POST /v1/tasks/{id}/tool_results`| what came of a call of a tool that the client offered     |
//! | `GET /v1/agents/status`           | live agents, and where they stand                         |
//! | `POST /v1/agents/{name}/start`    | starts an agent                                           |
//! | `POST /v1/agents/{name}/stop`     | stops it                                                  |
//! | `POST /v1/agents/{name}/inbox`    | puts something into its inbox: 202                        |
//! | `GET /v1/inbox`                   | what waits in inboxes                                     |
//! | `POST /v1/events/{source}`        | an event from outside, signed: 202                        |
//! | `GET /v1/requests/{id}`           | how far a request to an agent got                         |
//! | `POST /v1/chat/completions`       | an answer, for OpenAI's clients and in canonical form     |
//! | `GET /v1/models`                  | who can answer there                                      |
//! | `GET /v1/usage`                   | what was spent, by day, model, agent and payer            |
//! | `GET /v1/budget`                  | what may be spent, and what was                           |
//! | `POST /v1/budget/allow`           | lets more be spent                                        |
//! | `GET /v1/approvals`               | questions to a person, the oldest first                   |
//! | `POST /v1/approvals/{id}`         | an answer                                                 |
//!
//! Who comes in:
//!
//! | asked, in this order                                    | otherwise                       |
//! |---------------------------------------------------------|---------------------------------|
//! | `Host` is a name this server goes by                    | 403                             |
//! | `Origin`, if there is one, is this server               | 403; nothing is told to others  |
//! | the token or a key, in constant time, but for what is open and signed events | 401; 503 when keys cannot be read |
//! | the key is not used too often                           | 429                             |
//! | its level: `read` to look, `write` to change, `admin` and no agent's to decide | 403      |
//! | the body is not too large                               | 413                             |
//!
//! A client that is slow to ask, slow to read or one too many costs a bounded amount of time and
//! memory; the bounds are [`Limits`].

mod agent_change;
mod agents;
mod api_error;
mod approvals;
mod budget;
mod caller;
mod chat;
mod desk;
mod diff;
mod doors;
mod event_filter;
mod events;
mod guard;
mod health;
mod hosts;
mod house;
mod hunks;
mod idempotency;
mod inbox;
mod invocations;
mod json;
mod keys;
mod listeners;
mod listing;
mod live;
mod metrics;
mod named;
mod on_behalf;
mod openapi;
mod orders;
mod pace;
mod requests;
mod rest;
mod room;
mod routes;
mod said;
mod serve;
mod sessions;
mod target;
mod task_request;
mod tasks;
mod tls;
mod token;
mod unstalled;
mod usage;
mod waiting;
mod watcher;
mod webhooks;

#[cfg(doc)]
use antiphon_runtime::Orchestrator;

pub use agent_change::AgentChange;
pub use antiphon_api::AgentOrigin;
pub use budget::{COMMENT_BYTES_MAX, dollars, nano_usd};
pub use desk::{Defined, TaskFactory};
pub use diff::{CHANGES_MAX, DIFFS_BYTES_MAX, FileChange, TaskDiff, Whose, task_diff};
pub use doors::{Limits, ServerDeps};
pub use house::ServerConfig;
pub use idempotency::KEY_BYTES_MAX;
pub use inbox::render_class;
pub use invocations::INVOCATION_TARGETS_MAX;
pub use keys::{Keys, RATE_PER_MINUTE_DEFAULT};
pub use listeners::{Listeners, UnixSocket};
pub use live::{AgentPresence, LIVE_MAX, agent_presences, unknown};
pub use requests::{RequestState, RequestStatus, request_status};
pub use rest::REST_WAIT_S_MAX;
pub use serve::serve;
pub use sessions::{forked, imported, session_of, session_summary};
pub use task_request::{HISTORY_MESSAGES_MAX, NAMES_MAX, TaskRequest};
pub use tasks::{LISTED_MAX, TREE_TASKS_MAX};
pub use tls::{Tls, TlsError};
pub use token::{TOKEN_BYTES_MIN, Token, TokenError};
pub use usage::{
    USAGE_DAYS_MAX, USAGE_ROWS_MAX, UsageBy, UsageReport, UsageRow, usage_days, usage_report,
};
pub use waiting::{Inboxes, QueuedInteraction, WAITING_MAX, live_agents, waiting};
pub use watcher::LAG_EVENTS_MAX;
pub use webhooks::{
    Reads, Scheme, TOLERANCE_S, WEBHOOK_BODY_BYTES_MAX, WEBHOOK_RATE_PER_MINUTE_DEFAULT,
    WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_TEXT_BYTES_MAX, WEBHOOKS_MAX, Webhook, WebhookSecret,
    WebhookSecretError, Webhooks, WebhooksError,
};
