//! The native HTTP API of the orchestrator.
//!
//! [`interface`] offers the routes to a server of `antiphon-interface-transport`, which authenticates, limits
//! and documents them. A handler parses a request, builds a typed value and gives it to the orchestrator; it
//! holds no logic. Every error is an [`ErrorResponse`](antiphon_core::ErrorResponse).
//!
//! | route                             | does                                                      |
//! |-----------------------------------|-----------------------------------------------------------|
//! | `GET /health`                     | `healthy`, or 503 `unhealthy`; no credentials             |
//! | `GET /health/ready`               | `ready`, or 503 `unhealthy`; no credentials               |
//! | `GET /health/live`                | `alive`; no credentials                                   |
//! | `GET /metrics`                    | metrics for Prometheus                                    |
//! | `POST /v1/tasks`                  | creates a task: 201, or 200 for a repeated key            |
//! | `POST /v1/runs`                   | starts the task of another process of the user            |
//! | `POST /v1/owner/requests`         | asks the owner to carry out requests dropped as files     |
//! | `POST /v1/owner/hand_over`        | asks the owner of the journal to give it to a server      |
//! | `GET /v1/tasks`                   | lists tasks by page, the newest first                     |
//! | `GET /v1/tasks/{id}`              | a task with its result                                    |
//! | `GET /v1/tasks/{id}/tree`         | a task and its descendants, the oldest first              |
//! | `GET /v1/tasks/{id}/rest`         | waits until a task has ended or is suspended              |
//! | `GET /v1/tasks/{id}/events`       | streams the events of a task                              |
//! | `GET /v1/tasks/{id}/diff`         | changes that the file tools of a task made                |
//! | `GET /v1/events`                  | streams the events of the whole journal                   |
//! | `POST /v1/invocations`            | dispatches 1..N targets                                   |
//! | `GET /v1/agents`                  | lists agent definitions                                   |
//! | `POST /v1/agents`                 | defines an agent; also `PUT` and `DELETE` of `…/{name}`   |
//! | `GET /v1/sessions`                | lists sessions; `…/{id}` with messages                    |
//! | `GET /v1/sessions/{id}/export`    | a session as a session file                               |
//! | `POST /v1/sessions`               | imports a session file                                    |
//! | `POST /v1/sessions/{id}/fork`     | forks a session                                           |
//! | `POST /v1/tasks/{id}/cancel`      | cancels a task and its descendants                        |
//! | `POST /v1/tasks/cancel`           | cancels the task of an `Idempotency-Key`                  |
//! | `POST /v1/tasks/{id}/pause`       | pauses a task                                             |
//! | `POST /v1/tasks/{id}/resume`      | resumes a task                                            |
//! | `POST /v1/tasks/{id}/interrupt`   | interrupts the turn of a task                             |
//! | `POST /v1/tasks/{id}/messages`    | sends a message to a task                                 |
//! | `POST /v1/tasks/{id}/tool_results`| gives the result of a tool that the client runs           |
//! | `GET /v1/agents/status`           | lists live agents                                         |
//! | `POST /v1/agents/{name}/start`    | starts a resident agent                                   |
//! | `POST /v1/agents/{name}/stop`     | stops a resident agent                                    |
//! | `POST /v1/agents/{name}/inbox`    | puts an interaction into an inbox: 202                    |
//! | `GET /v1/inbox`                   | lists interactions that wait in inboxes                   |
//! | `POST /v1/events/{source}`        | accepts a signed webhook event: 202                       |
//! | `GET /v1/requests/{id}`           | the status of a request to an agent                       |
//! | `GET /v1/usage`                   | usage and cost by day, model, agent and payer             |
//! | `GET /v1/budget`                  | spend limits and what was spent                           |
//! | `POST /v1/budget/allow`           | raises the spend limits of this day and month             |
//! | `GET /v1/approvals`               | lists approvals, the oldest first                         |
//! | `POST /v1/approvals/{id}`         | decides an approval                                       |

mod routes;
mod webhooks;

pub use routes::PAGE_MAX;
pub use routes::budget::COMMENT_BYTES_MAX;
pub use routes::interface;
pub use routes::tasks::wait::WAIT_S_MAX;
pub use webhooks::{
    Scheme, TOLERANCE_S, WEBHOOK_BODY_BYTES_MAX, WEBHOOK_RATE_PER_MINUTE_DEFAULT,
    WEBHOOK_SECRET_BYTES_MIN, WEBHOOK_TEXT_BYTES_MAX, WEBHOOKS_MAX, Webhook, WebhookContent,
    WebhookSecret, WebhookSecretError, Webhooks, WebhooksError,
};
