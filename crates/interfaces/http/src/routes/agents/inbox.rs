//! Inboxes of agents: interactions are put into one, and those that wait are listed.

use std::sync::Arc;

use antiphon_api::{InboxPage, InboxQuery, RequestBody, SendInteraction};
use antiphon_core::port::{Clock, QueuedQuery, SystemClock};
use antiphon_core::{
    AgentName, ErrorCode, InteractionContent, RawJson, RenderMetadata, Sender, SourceName, Wake,
};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Json, PathId, QueryParams, idempotency,
};
use antiphon_project::{
    Inboxes, check_send_allowed, forbidden, queued_interactions, render_class, request_deadline,
};
use antiphon_runtime::{Arrival, Receipt};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::routes::page_size;
use crate::webhooks::ConfiguredWebhooks;

fn arrival(
    sent: SendInteraction,
    webhooks: &ConfiguredWebhooks,
    caller: &Caller,
    to: AgentName,
    key: Option<String>,
) -> Result<Arrival, ApiError> {
    let from = sender(webhooks, caller, sent.from)?;
    let content = match (sent.content, sent.message, sent.request) {
        (Some(content), None, None) => content,
        (None, Some(body), None) => InteractionContent::Message { body, blocks: None },
        (None, None, Some(RequestBody { intent, params })) => {
            InteractionContent::Request { intent, params }
        }
        // An event may have no text: its label says that it happened.
        (None, None, None) if matches!(from, Sender::External(_)) => {
            InteractionContent::Message { body: String::new(), blocks: None }
        }
        (None, None, None) | (Some(_), _, _) | (_, Some(_), _) => {
            let message = "`message`: exactly one of `message`, `request` and `content` is needed";
            return Err(ApiError::invalid(message));
        }
    };
    if let InteractionContent::Request { params, .. } = &content {
        // The journal must be able to store it.
        let stored = RawJson::of(params);
        stored.map_err(|error| ApiError::invalid(format!("`params`: {error}")))?;
    }
    let until = request_deadline(&from, &content, sent.timeout_s, SystemClock.now())?;
    let class = render_class(&from, &content);
    let is_message = matches!(content, InteractionContent::Message { .. });
    if sent.progress && (sent.salience.is_some() || sent.wake.is_some() || !is_message) {
        let message = "`progress`: a message without `salience` and `wake`; omit them";
        return Err(ApiError::invalid(message));
    }
    let shown = sent.salience.map(|salience| RenderMetadata { class, salience });
    Ok(Arrival {
        to,
        from,
        content,
        mode: sent.mode,
        render_metadata: if sent.progress { Some(RenderMetadata::PROGRESS) } else { shown },
        wake: if sent.progress || sent.wake == Some(false) { Wake::No } else { Wake::Yes },
        until,
        key,
        payload: None,
        provenance: caller.principal().provenance(),
    })
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

/// The idempotency key of a sender. Holders of different keys are all the user, so the key's id distinguishes them
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
    Json(wire): Json<SendInteraction>,
) -> Result<(StatusCode, axum::Json<Receipt>), ApiError> {
    let key = idempotency::own_key(&headers)?;
    let key = key.map(|key| sender_key(&caller, key));
    let arrival = arrival(wire, &webhooks, &caller, name, key)?;
    let orchestrator = &state.deps.orchestrator;
    orchestrator.check_budget_for_arrival(caller.payer().as_deref(), &arrival).await?;
    let receipt = match caller.agent() {
        Some(_) => {
            let factory = &*state.deps.task_factory;
            let principal = caller.principal();
            check_send_allowed(orchestrator, factory, &principal, &arrival.to).await?;
            orchestrator.admit_if_started(arrival).await?
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

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<InboxQuery>,
) -> Result<axum::Json<InboxPage>, ApiError> {
    let limit = page_size(query.limit)?;
    let agents = state.deps.task_factory.agents();
    let inboxes = query.agent.as_ref().map_or(Inboxes::All(&agents), Inboxes::Of);
    let page = QueuedQuery { after: query.cursor.unwrap_or_default(), limit };
    Ok(axum::Json(queued_interactions(&state.deps.orchestrator, inboxes, page).await?))
}
