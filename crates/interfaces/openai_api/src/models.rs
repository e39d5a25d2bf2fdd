//! What `model` can name: the agents that are defined, and the known models. Other models can be named too;
//! their provider decides whether they exist.

use std::sync::Arc;

use antiphon_interface_transport::AppState;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::chat_error::Shape;
use crate::chat_task::model_not_found;

pub(crate) async fn list(State(state): State<Arc<AppState>>) -> Json<Value> {
    Json(json!({ "object": "list", "data": known(&state) }))
}

pub(crate) async fn show(State(state): State<Arc<AppState>>, Path(id): Path<String>) -> Response {
    match known(&state).into_iter().find(|model| model["id"] == id.as_str()) {
        Some(model) => Json(model).into_response(),
        None => model_not_found(&id).into_response(Shape::OpenAi),
    }
}

fn known(state: &AppState) -> Vec<Value> {
    // The time of creation is unknown, and clients expect a number.
    let model = |id: &str, owned_by: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": owned_by });
    let agents = state.deps.task_factory.agents();
    let agents = agents.iter().map(|agent| model(agent.as_str(), "antiphon"));
    let models = state.deps.task_factory.models();
    let models = models.iter().map(|known| model(&known.to_string(), known.provider()));
    agents.chain(models).collect()
}
