//! Inboxes of agents: something is put into one, and what waits is listed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, ErrorCode, HandlingMode, InteractionContent, RawJson, RenderClass, RenderMetadata,
    Salience, Sender, SourceName,
};
use antiphon_runtime::{Arrival, REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX, Receipt, Wake};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::json::Json;
use crate::named::{Asked, Named};
use crate::on_behalf;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::tasks::{LISTED, LISTED_MAX};
use crate::waiting::{Inboxes, Waiting, waiting};
use crate::webhooks::Webhooks;

/// What a client puts into an inbox.
#[derive(Deserialize, JsonSchema)]
#[schemars(
    rename = "Arrival",
    example = json!({ "from": "ci", "message": "The build is red." }),
    example = json!({ "request": { "intent": "ask", "params": { "about": "the build" } }, "timeout_s": 60 }),
    example = json!({ "content": { "type": "message", "body": "hello" }, "mode": "steer" }),
)]
pub(crate) struct ArrivalWire {
    /// The source of an event; when absent, the user's own words, or those of the agent whose key it is.
    from: Option<SourceName>,
    /// An interaction as agents exchange them; this, `message` or `request`.
    content: Option<InteractionContent>,
    /// A text.
    message: Option<String>,
    /// Something to do, which is answered.
    request: Option<RequestWire>,
    /// When it may reach the model.
    #[serde(default)]
    mode: HandlingMode,
    /// How urgent it is.
    salience: Option<Salience>,
    /// `false`: it wakes nobody.
    wake: Option<bool>,
    /// How long a request waits for its answer; 600 when absent.
    #[schemars(range(max = REQUEST_TIMEOUT_S_MAX))]
    timeout_s: Option<NonZeroU32>,
}

/// Something to do.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
struct RequestWire {
    /// What.
    intent: String,
    /// With what.
    #[serde(default)]
    params: Value,
}

impl ArrivalWire {
    fn arrival(
        self,
        webhooks: Option<&Webhooks>,
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
                let message = "one of `message`, `request` and `content` is needed, and only one";
                return Err(ApiError::invalid(message));
            }
        };
        if let InteractionContent::Request { params, .. } = &content {
            // What goes into the journal must come out of it again.
            let kept = RawJson::of(params);
            kept.map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
        }
        let until = until(&from, &content, self.timeout_s, SystemClock.now())?;
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

/// Who it is from. Nobody passes for a source whose events are signed, and an agent for nobody else.
fn sender(
    webhooks: Option<&Webhooks>,
    caller: &Caller,
    from: Option<SourceName>,
) -> Result<Sender, ApiError> {
    let from = match (from, caller.agent()) {
        (None, _) => caller.speaks_as()?,
        (Some(source), Some(agent)) if source.as_str() != agent.as_str() => {
            let message = format!("`from`: this key speaks as `{agent}` and as nobody else");
            return Err(on_behalf::forbidden(message));
        }
        (Some(source), Some(_) | None) => Sender::External(source),
    };
    match &from {
        Sender::External(source) if webhooks.is_some_and(|known| known.has(source)) => {
            let message = format!(
                "`from`: what `{source}` says is signed, and comes to /v1/events/{source}: name another"
            );
            Err(ApiError::new(ErrorCode::InvalidMessage, message))
        }
        Sender::External(_) | Sender::User | Sender::Peer(_) => Ok(from),
    }
}

/// What kind of thing something is to its reader.
pub fn render_class(from: &Sender, content: &InteractionContent) -> RenderClass {
    match (from, content) {
        (Sender::External(_), _) => RenderClass::ExternalEvent,
        (Sender::User | Sender::Peer(_), InteractionContent::Request { .. }) => {
            RenderClass::PeerRequest
        }
        (Sender::User | Sender::Peer(_), InteractionContent::Response { .. }) => {
            RenderClass::PeerResponse
        }
        (Sender::Peer(_), _) => RenderClass::PeerMessage,
        (Sender::User, _) => RenderClass::UserPrompt,
    }
}

/// When an answer comes too late. Nobody answers an event.
fn until(
    from: &Sender,
    content: &InteractionContent,
    timeout_s: Option<NonZeroU32>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, ApiError> {
    let is_asked = matches!(content, InteractionContent::Request { .. });
    if !is_asked || matches!(from, Sender::External(_)) {
        return match timeout_s {
            Some(_) => Err(ApiError::invalid("`timeout_s`: only a request is answered")),
            None => Ok(None),
        };
    }
    let timeout_s = timeout_s.map_or(REQUEST_TIMEOUT_S_DEFAULT, NonZeroU32::get);
    if timeout_s > REQUEST_TIMEOUT_S_MAX {
        return Err(ApiError::invalid(format!("`timeout_s`: 1 to {REQUEST_TIMEOUT_S_MAX}")));
    }
    Ok(Some(now + TimeDelta::seconds(timeout_s.into())))
}

/// A sender's name for something: people with different keys are all the user, and name things apart.
fn own_name(caller: &Caller, key: String) -> String {
    match caller {
        Caller::Owner => key,
        Caller::Key(allowed) => format!("@{}:{key}", allowed.id),
    }
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let admit = post_with(admit, |route| {
        let summary = "Puts something into the inbox of an agent: it is on disk then.";
        let route = route.told("send_to_agent", Tag::Agents, summary).keyed();
        route.fails(&[403, 404, 409, 422]).response::<202, axum::Json<Receipt>>()
    });
    let list = get_with(list, |route| {
        route.told("list_waiting", Tag::Agents, "What waits in inboxes, in the order of arrival.")
    });
    ApiRouter::new().api_route("/v1/agents/{name}/inbox", admit).api_route("/v1/inbox", list)
}

/// Takes something in. When this is answered, the journal has it.
pub(crate) async fn admit(
    State(room): State<Arc<AppState>>,
    caller: Caller,
    Named(name): Named<AgentName>,
    headers: HeaderMap,
    Json(wire): Json<ArrivalWire>,
) -> Result<(StatusCode, axum::Json<Receipt>), ApiError> {
    let key = idempotency::own_key(&headers)?;
    let key = key.map(|key| own_name(&caller, key));
    let arrival = wire.arrival(room.webhooks.as_ref(), &caller, name, key)?;
    room.doors.orchestrator.check_budget_for_arrival(caller.payer().as_deref(), &arrival).await?;
    let receipt = match caller.agent() {
        Some(_) => {
            on_behalf::may_send(&room, &caller, &arrival.to).await?;
            room.doors.orchestrator.admit_if_started(arrival).await?
        }
        None => room.doors.orchestrator.admit(arrival).await?,
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
    /// Whose inbox.
    agent: Option<AgentName>,
    /// How many, at most; 100 when absent.
    #[schemars(range(max = LISTED_MAX))]
    limit: Option<NonZeroUsize>,
}

/// What waits, in the order of arrival.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Inbox {
    waiting: Vec<Waiting>,
    /// How many there are, also of those that are not listed.
    total: usize,
}

pub(crate) async fn list(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<ListQuery>,
) -> Result<axum::Json<Inbox>, ApiError> {
    let limit = query.limit.map_or(LISTED, NonZeroUsize::get);
    if limit > LISTED_MAX {
        return Err(ApiError::invalid(format!("`limit`: {LISTED_MAX} at most")));
    }
    let agents = room.doors.desk.agents();
    let inboxes = query.agent.as_ref().map_or(Inboxes::All(&agents), Inboxes::Of);
    let mut found = waiting(&room.doors.orchestrator, inboxes).await?;
    let total = found.len();
    found.truncate(limit);
    Ok(axum::Json(Inbox { waiting: found, total }))
}
