//! Inboxes of agents: interactions are put into one, and those that wait are listed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, ErrorCode, HandlingMode, InteractionContent, RawJson, RenderMetadata, Salience,
    Sender, SourceName,
};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Json, PathId, QueryParams, idempotency,
};
use antiphon_project::{
    Inboxes, Waiting, check_send_allowed, forbidden, render_class, request_deadline, waiting,
};
use antiphon_runtime::{Arrival, REQUEST_TIMEOUT_S_MAX, Receipt, Wake};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::routes::{PAGE_MAX, page_size};
use crate::webhooks::ConfiguredWebhooks;

/// An interaction for an inbox. Exactly one of `message`, `request` and `content` is set.
#[derive(Deserialize, JsonSchema)]
#[schemars(
    rename = "Arrival",
    example = json!({ "from": "ci", "message": "The build is red." }),
    example = json!({ "request": { "intent": "ask", "params": { "about": "the build" } }, "timeout_s": 60 }),
    example = json!({ "content": { "type": "message", "body": "hello" }, "mode": "steer" }),
)]
pub(crate) struct ArrivalWire {
    /// Source of an external event. When absent, the sender is the user, or the agent that the API key was
    /// issued to.
    from: Option<SourceName>,
    /// Content as agents exchange it.
    content: Option<InteractionContent>,
    /// A text message.
    message: Option<String>,
    /// A request, which the agent answers: see `GET /v1/requests/{id}`.
    request: Option<RequestWire>,
    /// When the agent reads it: `queue` after its current work, `steer` after the current step; `queue` when
    /// absent.
    #[serde(default)]
    mode: HandlingMode,
    /// Urgency, as the model reads it; derived from the content when absent.
    salience: Option<Salience>,
    /// `false`: does not wake an idle agent; `true` when absent.
    wake: Option<bool>,
    /// How long a request waits for its answer, in seconds; 600 when absent. Only for requests.
    #[schemars(range(max = REQUEST_TIMEOUT_S_MAX))]
    timeout_s: Option<NonZeroU32>,
}

/// A request to an agent.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
struct RequestWire {
    /// What is requested, as the agent defines it.
    intent: String,
    /// Parameters, which match the schema of the intent; `null` when absent.
    #[serde(default)]
    params: Value,
}

impl ArrivalWire {
    fn arrival(
        self,
        webhooks: &ConfiguredWebhooks,
        caller: &Caller,
        to: AgentName,
        key: Option<String>,
    ) -> Result<Arrival, ApiError> {
        let from = sender(webhooks, caller, self.from)?;
        let content = match (self.content, self.message, self.request) {
            (Some(content), None, None) => content,
            (None, Some(body), None) => InteractionContent::Message { body, blocks: None },
            (None, None, Some(RequestWire { intent, params })) => {
                InteractionContent::Request { intent, params }
            }
            (None, None, None) | (Some(_), _, _) | (_, Some(_), _) => {
                let message = "exactly one of `message`, `request` and `content` is needed";
                return Err(ApiError::invalid(message));
            }
        };
        if let InteractionContent::Request { params, .. } = &content {
            // The journal must be able to store it.
            let stored = RawJson::of(params);
            stored.map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
        }
        let until = request_deadline(&from, &content, self.timeout_s, SystemClock.now())?;
        let class = render_class(&from, &content);
        Ok(Arrival {
            to,
            from,
            content,
            mode: self.mode,
            render_metadata: self.salience.map(|salience| RenderMetadata { class, salience }),
            wake: if self.wake == Some(false) { Wake::No } else { Wake::Yes },
            until,
            key,
            payload: None,
        })
    }
}

/// The sender. A source with signed events cannot be named here, and an agent can name only itself.
fn sender(
    webhooks: &ConfiguredWebhooks,
    caller: &Caller,
    from: Option<SourceName>,
) -> Result<Sender, ApiError> {
    let from = match (from, caller.agent()) {
        (None, _) => caller.sender()?,
        (Some(source), Some(agent)) if source.as_str() != agent.as_str() => {
            let message = format!(
                "`from`: this is a key of agent `{agent}`, which sends only in its own name"
            );
            return Err(forbidden(message).into());
        }
        (Some(source), Some(_) | None) => Sender::External(source),
    };
    match &from {
        Sender::External(source) if webhooks.has(source) => {
            let message = format!(
                "`from`: events of `{source}` are signed and sent to /v1/events/{source}: name another source"
            );
            Err(ApiError::new(ErrorCode::InvalidMessage, message))
        }
        Sender::External(_) | Sender::User | Sender::Peer(_) => Ok(from),
    }
}

/// The idempotency key of a sender. Holders of different keys are all the user, so the key's id tells them
/// apart.
fn sender_key(caller: &Caller, key: String) -> String {
    match caller {
        Caller::Owner => key,
        Caller::Key(allowed) => format!("@{}:{key}", allowed.id),
    }
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let admit = post_with(admit, |route| {
        let summary =
            "Puts an interaction into the inbox of an agent. It is durable before the response.";
        let route = route.describe("send_to_agent", Tag::Agents, summary).with_idempotency_key();
        route.fails(&[403, 404, 409, 422]).response::<202, axum::Json<Receipt>>()
    });
    let list = get_with(list, |route| {
        route.describe(
            "list_waiting",
            Tag::Agents,
            "Lists interactions that wait in inboxes, in the order of arrival.",
        )
    });
    ApiRouter::new().api_route("/v1/agents/{name}/inbox", admit).api_route("/v1/inbox", list)
}

/// Accepts an interaction. It is durable before the response.
pub(crate) async fn admit(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    Extension(webhooks): Extension<ConfiguredWebhooks>,
    PathId(name): PathId<AgentName>,
    headers: HeaderMap,
    Json(wire): Json<ArrivalWire>,
) -> Result<(StatusCode, axum::Json<Receipt>), ApiError> {
    let key = idempotency::own_key(&headers)?;
    let key = key.map(|key| sender_key(&caller, key));
    let arrival = wire.arrival(&webhooks, &caller, name, key)?;
    let orchestrator = &state.deps.orchestrator;
    orchestrator.afford_sending(caller.payer().as_deref(), &arrival).await?;
    let receipt = match caller.agent() {
        Some(_) => {
            let factory = &*state.deps.task_factory;
            let principal = caller.principal();
            check_send_allowed(orchestrator, factory, &principal, &arrival.to).await?;
            orchestrator.admit_to_live(arrival).await?
        }
        None => orchestrator.admit(arrival).await?,
    };
    match receipt {
        Receipt::Rejected(rejection) => Err(rejection.into()),
        receipt @ (Receipt::Accepted { .. } | Receipt::Deduplicated { .. } | Receipt::Filtered) => {
            Ok((StatusCode::ACCEPTED, axum::Json(receipt)))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListQuery {
    /// Name of the agent whose inbox to list; all inboxes when absent.
    agent: Option<AgentName>,
    /// Interactions to list, at most; 100 when absent.
    #[schemars(range(max = PAGE_MAX))]
    limit: Option<NonZeroUsize>,
}

/// Interactions that wait in inboxes.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Inbox {
    /// In the order of arrival.
    waiting: Vec<Waiting>,
    /// Number of interactions that wait, including those that are not listed.
    total: usize,
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<axum::Json<Inbox>, ApiError> {
    let limit = page_size(query.limit)?;
    let agents = state.deps.task_factory.agents();
    let inboxes = query.agent.as_ref().map_or(Inboxes::All(&agents), Inboxes::Of);
    let mut found = waiting(&state.deps.orchestrator, inboxes).await?;
    let total = found.len();
    found.truncate(limit);
    Ok(axum::Json(Inbox { waiting: found, total }))
}
