//! The names that `model` accepts, for clients that send `anthropic-version`.

use antiphon_interface_transport::AppState;
use antiphon_interface_transport::answer::{AnswerAgents, known_models, model_not_found};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::refuse;

const VERSION: HeaderName = HeaderName::from_static("anthropic-version");

/// Whether a client speaks Anthropic's API.
pub(crate) fn is_for(headers: &HeaderMap) -> bool {
    headers.contains_key(VERSION)
}

/// The models, or one of them; `None` for a client of another API.
pub fn models(
    state: &AppState,
    agents: &AnswerAgents,
    headers: &HeaderMap,
    id: Option<&str>,
) -> Option<Response> {
    if !is_for(headers) {
        return None;
    }
    // The time of creation is unknown, and clients expect one.
    let created_at = "1970-01-01T00:00:00Z";
    let model = |(id, _): (String, String)| json!({ "type": "model", "id": id, "display_name": id, "created_at": created_at });
    let known: Vec<Value> = known_models(state, agents).into_iter().map(model).collect();
    let Some(id) = id else {
        let first = known.first().map(|model| model["id"].clone());
        let last = known.last().map(|model| model["id"].clone());
        let all = json!({ "data": known, "first_id": first, "last_id": last, "has_more": false });
        return Some(axum::Json(all).into_response());
    };
    match known.into_iter().find(|model| model["id"] == id) {
        Some(model) => Some(axum::Json(model).into_response()),
        None => Some(refuse(&model_not_found(id))),
    }
}
