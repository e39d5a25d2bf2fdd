//! Who can be named as `model`: the agents that are defined, and the models that are known. Others may
//! be asked too; whether they answer is their provider's to say.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::nobody;
use super::refusal::Shape;
use crate::room::AppState;

pub(crate) async fn list(State(room): State<Arc<AppState>>) -> Json<Value> {
    Json(json!({ "object": "list", "data": known(&room) }))
}

pub(crate) async fn show(State(room): State<Arc<AppState>>, Path(id): Path<String>) -> Response {
    match known(&room).into_iter().find(|model| model["id"] == id.as_str()) {
        Some(model) => Json(model).into_response(),
        None => nobody(&id).into_response(Shape::OpenAi),
    }
}

fn known(room: &AppState) -> Vec<Value> {
    // Nobody knows when they were made, and clients want a number.
    let model = |id: &str, owned_by: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": owned_by });
    let agents = room.doors.desk.agents();
    let agents = agents.iter().map(|agent| model(agent.as_str(), "antiphon"));
    let models = room.doors.desk.models();
    let models = models.iter().map(|known| model(&known.to_string(), known.provider()));
    agents.chain(models).collect()
}
