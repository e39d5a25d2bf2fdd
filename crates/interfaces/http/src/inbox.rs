//! Inboxes of agents: something is put into one, and what waits is listed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_api::{InboxPage, InboxQuery, LISTED_MAX, RequestBody, SendInteraction};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    AgentName, ErrorCode, InteractionContent, RawJson, RenderClass, RenderMetadata, Sender,
    SourceName,
};
use antiphon_runtime::{Arrival, REQUEST_TIMEOUT_S_DEFAULT, REQUEST_TIMEOUT_S_MAX, Receipt, Wake};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};

use crate::api_error::ApiError;
use crate::caller::Caller;
use crate::idempotency;
use crate::json::Json;
use crate::named::{Asked, Named};
use crate::on_behalf;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::tasks::LISTED;
use crate::waiting::{Inboxes, waiting};
use crate::webhooks::Webhooks;

// The API document and this check name the same limit.
const _: () = assert!(antiphon_api::REQUEST_TIMEOUT_S_MAX == REQUEST_TIMEOUT_S_MAX);

/// The interaction that a client sends, checked.
fn arrival(
    body: SendInteraction,
    webhooks: Option<&Webhooks>,
    caller: &Caller,
    to: AgentName,
    key: Option<String>,
) -> Result<Arrival, ApiError> {
    let from = sender(webhooks, caller, body.from)?;
    let content = match (body.content, body.message, body.request) {
        (Some(content), None, None) => content,
        (None, Some(text), None) => InteractionContent::Message { body: text, blocks: None },
        (None, None, Some(RequestBody { intent, params })) => {
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
    let until = until(&from, &content, body.timeout_s, SystemClock.now())?;
    let class = render_class(&from, &content);
    Ok(Arrival {
        to,
        from,
        content,
        mode: body.mode,
        render_metadata: body.salience.map(|salience| RenderMetadata { class, salience }),
        wake: if body.wake == Some(false) { Wake::No } else { Wake::Yes },
        until,
        key,
        payload: None,
    })
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
        route.fails(&[403, 404, 409, 422]).response::<202, axum::Json<antiphon_api::Receipt>>()
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
    Json(wire): Json<SendInteraction>,
) -> Result<(StatusCode, axum::Json<antiphon_api::Receipt>), ApiError> {
    let key = idempotency::own_key(&headers)?;
    let key = key.map(|key| own_name(&caller, key));
    let arrival = arrival(wire, room.webhooks.as_ref(), &caller, name, key)?;
    room.doors.orchestrator.afford_sending(caller.payer().as_deref(), &arrival).await?;
    let receipt = match caller.agent() {
        Some(_) => {
            on_behalf::may_send(&room, &caller, &arrival.to).await?;
            room.doors.orchestrator.admit_to_live(arrival).await?
        }
        None => room.doors.orchestrator.admit(arrival).await?,
    };
    let receipt = match receipt {
        Receipt::Rejected(rejection) => return Err(rejection.into()),
        Receipt::Accepted { id, task_id } => antiphon_api::Receipt::Accepted { id, task_id },
        Receipt::Deduplicated { id, task_id } => {
            antiphon_api::Receipt::Deduplicated { id, task_id }
        }
        Receipt::Filtered => antiphon_api::Receipt::Filtered,
    };
    Ok((StatusCode::ACCEPTED, axum::Json(receipt)))
}

pub(crate) async fn list(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<InboxQuery>,
) -> Result<axum::Json<InboxPage>, ApiError> {
    let limit = query.limit.map_or(LISTED, NonZeroUsize::get);
    if limit > LISTED_MAX {
        return Err(ApiError::invalid(format!("`limit`: {LISTED_MAX} at most")));
    }
    let agents = room.doors.desk.agents();
    let inboxes = query.agent.as_ref().map_or(Inboxes::All(&agents), Inboxes::Of);
    let mut found = waiting(&room.doors.orchestrator, inboxes).await?;
    let total = found.len();
    found.truncate(limit);
    Ok(axum::Json(InboxPage { waiting: found, total }))
}
