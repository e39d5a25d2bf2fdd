//! One event on its way to an inbox.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{ErrorCode, InteractionContent, RawJson, RenderClass, RenderMetadata, Sender};
use antiphon_runtime::{Arrival, Receipt, Rejection};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Reads, WEBHOOK_TEXT_BYTES_MAX, Webhook, signature};
use crate::api_error::ApiError;
use crate::guard::count_down;
use crate::json::{check_kind, read};
use crate::named::Named;
use crate::room::AppState;

/// What the sender is told. It does not learn who reads it, nor where.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "EventTaken")]
pub(crate) struct Taken {
    receipt: &'static str,
}

/// Takes an event. When this is answered, the journal has it.
pub(crate) async fn take(
    State(room): State<Arc<AppState>>,
    Named(source): Named<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let hooks = room.webhooks.as_ref();
    let known = hooks.and_then(|hooks| Some((&hooks.limiter, hooks.sources.get(&source)?)));
    let Some((limiter, (id, webhook))) = known else {
        return Err(ApiError::new(ErrorCode::NotFound, "there is nothing of this name"));
    };
    let headers = request.headers().clone();
    let body = read(request, &room, webhook.body_bytes_max).await?;
    let now = SystemClock.now();
    let proven = signature::verify(webhook.scheme, &webhook.secret, &headers, &body, now);
    let name = proven.map_err(|why| {
        tracing::info!(webhook.source = %webhook.source, %why, "an event was refused");
        ApiError::new(ErrorCode::Unauthorized, "the signature is missing, too old or not good")
    })?;
    let verdict = limiter.check(*id, webhook.rate, now);
    let mut response = if verdict.is_allowed() {
        admit(&room, webhook, &headers, &body, &name).await.into_response()
    } else {
        ApiError::too_often(&verdict).into_response()
    };
    count_down(response.headers_mut(), Some(&verdict));
    Ok(response)
}

async fn admit(
    room: &AppState,
    webhook: &Webhook,
    headers: &HeaderMap,
    body: &[u8],
    name: &str,
) -> Result<(StatusCode, axum::Json<Taken>), ApiError> {
    check_kind(headers)?;
    let arrival = arrival(webhook, body, name)?;
    let receipt = match room.doors.orchestrator.admit(arrival).await? {
        Receipt::Accepted { .. } => "accepted",
        Receipt::Deduplicated { .. } => "deduplicated",
        Receipt::Filtered => "filtered",
        Receipt::Rejected(rejection) => return Err(rejected(webhook, rejection)),
    };
    Ok((StatusCode::ACCEPTED, axum::Json(Taken { receipt })))
}

fn arrival(webhook: &Webhook, body: &[u8], name: &str) -> Result<Arrival, ApiError> {
    let wrong = |error: String| ApiError::invalid(format!("the body: {error}"));
    let text = std::str::from_utf8(body).map_err(|error| wrong(error.to_string()))?;
    let payload = RawJson::parse(text).map_err(|error| wrong(error.to_string()))?;
    let value: Value = payload.to().map_err(|error| wrong(error.to_string()))?;
    let text = match webhook.reads {
        Reads::Body => value.get("body").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Reads::Payload => serde_json::to_string_pretty(&value).unwrap_or_default(),
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
        // Apart from the names that clients with a token give to what they send.
        key: Some(format!("webhook:{name}")),
        payload: Some(payload),
    })
}

/// As much of it as a model reads, and how much that leaves out.
fn shortened(text: String) -> String {
    let end = text.floor_char_boundary(WEBHOOK_TEXT_BYTES_MAX);
    match text.len() - end {
        0 => text,
        left_out => format!("{}\n… {left_out} bytes more", &text[..end]),
    }
}

/// What is not in the inbox. Why is for whoever configured it: a sender learns whether to come again.
fn rejected(webhook: &Webhook, rejection: Rejection) -> ApiError {
    tracing::warn!(
        webhook.source = %webhook.source,
        agent.name = %webhook.agent,
        reason = %rejection,
        "an event was not taken"
    );
    match rejection {
        Rejection::Full { .. } | Rejection::SenderFull { .. } => {
            let message = "too much waits to be read: send it again later";
            ApiError::new(ErrorCode::RateLimitExceeded, message)
        }
        Rejection::UnknownAgent { .. }
        | Rejection::NotStarted { .. }
        | Rejection::Stopped { .. }
        | Rejection::CannotStart { .. } => {
            let message = "nobody is there to read it: send it again later";
            ApiError::new(ErrorCode::ServiceUnavailable, message)
        }
        Rejection::TooLong { .. } | Rejection::Invalid { .. } => rejection.into(),
    }
}
