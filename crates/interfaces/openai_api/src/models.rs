//! The names that `model` accepts: the agents that are defined, the known models, and the user's aliases. Other models
//! can be named too; their provider decides whether they exist.

use std::sync::Arc;

use antiphon_interface_transport::AppState;
use antiphon_interface_transport::answer::{AnswerAgents, known_models, model_not_found};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::openai_error::{self, Shape};

/// Lists the models, or shows one, in the shape of another API that has the same route.
pub type OtherModels = fn(&AppState, &AnswerAgents, &HeaderMap, Option<&str>) -> Option<Response>;

pub(crate) fn list(
    State(state): State<Arc<AppState>>,
    agents: &AnswerAgents,
    headers: HeaderMap,
    other: OtherModels,
) -> Response {
    if let Some(response) = other(&state, agents, &headers, None) {
        return response;
    }
    axum::Json(json!({ "object": "list", "data": known(&state, agents) })).into_response()
}

pub(crate) fn show(
    State(state): State<Arc<AppState>>,
    agents: &AnswerAgents,
    Path(id): Path<String>,
    headers: HeaderMap,
    other: OtherModels,
) -> Response {
    if let Some(response) = other(&state, agents, &headers, Some(&id)) {
        return response;
    }
    match known(&state, agents).into_iter().find(|model| model["id"] == id.as_str()) {
        Some(model) => axum::Json(model).into_response(),
        None => {
            let error = model_not_found(&id);
            error.respond(openai_error::body(&error, Shape::OpenAi))
        }
    }
}

fn known(state: &AppState, agents: &AnswerAgents) -> Vec<Value> {
    // The time of creation is unknown, and clients expect a number.
    let model =
        |(id, owner)| json!({ "id": id, "object": "model", "created": 0, "owned_by": owner });
    known_models(state, agents).into_iter().map(model).collect()
}
