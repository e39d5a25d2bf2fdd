//! Accepts one webhook event into the inbox of its agent.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    ErrorCode, InteractionContent, Provenance, RawJson, RenderClass, RenderMetadata, Sender,
};
use antiphon_interface_transport::{
    ApiError, AppState, PathId, check_content_type, read_body, set_rate_limit_headers,
};
use antiphon_runtime::{Arrival, Receipt, Rejection};
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{ConfiguredWebhooks, WEBHOOK_TEXT_BYTES_MAX, Webhook, WebhookContent, signature};

/// The response to the sender, which does not learn which agent reads the event.
#[derive(JsonSchema, Serialize)]
pub(crate) struct EventAccepted {
    /// `accepted`, `deduplicated` for a repeated delivery, or `filtered` when the agent ignores such events.
    receipt: &'static str,
}

/// Accepts an event. It is durable before the response.
pub(crate) async fn accept(
    State(state): State<Arc<AppState>>,
    Extension(ConfiguredWebhooks(webhooks)): Extension<ConfiguredWebhooks>,
    PathId(source): PathId<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let webhooks = webhooks.as_deref();
    let known = webhooks.and_then(|all| Some((&all.limiter, all.sources.get(&source)?)));
    let Some((limiter, (id, webhook))) = known else {
        return Err(ApiError::new(ErrorCode::NotFound, "there is nothing of this name"));
    };
    let headers = request.headers().clone();
    let body = read_body(request, &state, webhook.body_bytes_max).await?;
    let now = SystemClock.now();
    let verified = signature::verify(webhook.scheme, &webhook.secret, &headers, &body, now);
    let delivery_id = verified.map_err(|reason| {
        tracing::info!(webhook.source = %webhook.source, %reason, "a webhook event was refused");
        ApiError::new(ErrorCode::Unauthorized, "the signature is missing, too old or invalid")
    })?;
    let verdict = limiter.check(*id, webhook.rate, now);
    let mut response = if verdict.is_allowed() {
        admit(&state, webhook, &headers, &body, &delivery_id).await.into_response()
    } else {
        ApiError::rate_limited(&verdict).into_response()
    };
    set_rate_limit_headers(response.headers_mut(), Some(&verdict));
    Ok(response)
}

async fn admit(
    state: &AppState,
    webhook: &Webhook,
    headers: &HeaderMap,
    body: &[u8],
    delivery_id: &str,
) -> Result<(StatusCode, axum::Json<EventAccepted>), ApiError> {
    check_content_type(headers)?;
    let arrival = arrival(webhook, body, delivery_id)?;
    let receipt = match state.deps.orchestrator.admit(arrival).await? {
        Receipt::Accepted { .. } => "accepted",
        Receipt::Deduplicated { .. } => "deduplicated",
        Receipt::Filtered => "filtered",
        Receipt::Rejected(rejection) => return Err(rejected(webhook, rejection)),
    };
    Ok((StatusCode::ACCEPTED, axum::Json(EventAccepted { receipt })))
}

fn arrival(webhook: &Webhook, body: &[u8], delivery_id: &str) -> Result<Arrival, ApiError> {
    let invalid = |error: String| ApiError::invalid(format!("`body`: {error}"));
    let text = std::str::from_utf8(body).map_err(|error| invalid(error.to_string()))?;
    let payload = RawJson::parse(text).map_err(|error| invalid(error.to_string()))?;
    let value: Value = payload.to().map_err(|error| invalid(error.to_string()))?;
    let text = match webhook.reads {
        WebhookContent::Body => {
            value.get("body").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        WebhookContent::Payload => serde_json::to_string_pretty(&value).unwrap_or_default(),
    };
    let shown = |salience| RenderMetadata { class: RenderClass::ExternalEvent, salience };
    Ok(Arrival {
        to: webhook.agent.clone(),
        from: Sender::External(webhook.source.clone()),
        content: InteractionContent::Message { body: shortened(text), blocks: None },
        mode: webhook.mode,
        render_metadata: webhook.salience.map(shown),
        wake: webhook.wake,
        until: None,
        // A prefix of its own: never collides with the keys of other clients.
        key: Some(format!("webhook:{delivery_id}")),
        payload: Some(payload),
        provenance: Provenance::Webhook(webhook.source.as_str().to_owned()),
    })
}

/// The text up to the limit, with a note about how much is left out.
fn shortened(text: String) -> String {
    let end = text.floor_char_boundary(WEBHOOK_TEXT_BYTES_MAX);
    match text.len() - end {
        0 => text,
        left_out => format!("{}\n… {left_out} bytes more", &text[..end]),
    }
}

/// The response to a rejected event. The log has the reason; the sender learns only whether to retry.
fn rejected(webhook: &Webhook, rejection: Rejection) -> ApiError {
    tracing::warn!(
        webhook.source = %webhook.source,
        agent.name = %webhook.agent,
        reason = %rejection,
        "a webhook event was rejected"
    );
    match rejection {
        Rejection::Full { .. } | Rejection::SenderFull { .. } => {
            let message = "the inbox is full: send the event again later";
            ApiError::new(ErrorCode::RateLimitExceeded, message)
        }
        Rejection::UnknownAgent { .. }
        | Rejection::NotStarted { .. }
        | Rejection::Stopped { .. }
        | Rejection::CannotStart { .. } => {
            let message = "the agent is not available: send the event again later";
            ApiError::new(ErrorCode::ServiceUnavailable, message)
        }
        Rejection::TooLong { .. } | Rejection::Invalid { .. } => rejection.into(),
    }
}
