//! OpenAI's API: `POST /v1/chat/completions` (also with canonical messages), `POST /v1/responses` and
//! `GET /v1/models`.
//!
//! Every request becomes a task of its own in the journal. `model` names an agent, which works with its own
//! tools, or a `PROVIDER/MODEL`, which answers without an agent. The client runs the tools that it offers: an
//! answer that calls them ends the task, and the next request continues the conversation. A field that cannot be
//! honored is refused, in the shape of the request.

mod chat;
mod models;
mod openai_error;
mod responses;

use std::sync::Arc;

use antiphon_core::TaskId;
use antiphon_interface_transport::answer::AnswerAgents;
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{AppState, ErrorShape, Interface, Json, OwnWork};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use schemars::json_schema;

use crate::chat::schema::{self, ChatAnswer, Model, Models, with_errors, with_stream};
pub use crate::models::OtherModels;

const CHAT: &str = "/v1/chat/completions";

const RESPONSES: &str = "/v1/responses";

/// Routes for keys that see their own work alone: each looks up the responses that it names for its caller.
const OWN_WORK: [&str; 8] = [
    CHAT,
    RESPONSES,
    "/v1/responses/{id}",
    "/v1/responses/{id}/cancel",
    "/v1/responses/{id}/input_items",
    "/v1/conversations",
    "/v1/models",
    "/v1/models/{*id}",
];

const TASK: HeaderName = HeaderName::from_static("x-antiphon-task");

/// The routes of chat completions, responses and models.
pub fn interface() -> Interface {
    interface_beside(|_, _, _, _| None)
}

/// The same, beside another API that lists models on the same route.
pub fn interface_beside(other: OtherModels) -> Interface {
    let paths = ["/v1/chat", RESPONSES, "/v1/conversations", "/v1/models"];
    let shape = |path| ErrorShape {
        path,
        applies: |_, _| true,
        body: openai_error::reshape,
        request_id: Some("x-request-id"),
    };
    Interface {
        agent_writable: vec![CHAT, RESPONSES],
        own_work: OWN_WORK.map(|route| (route, OwnWork::Handler)).into(),
        error_shapes: paths.map(shape).into(),
        ..Interface::new(move || routes(other))
    }
}

fn with_task(mut response: Response, task_id: &TaskId) -> Response {
    if let Ok(task_id) = HeaderValue::from_str(task_id.as_str()) {
        response.headers_mut().insert(TASK, task_id);
    }
    response
}

fn routes(other: OtherModels) -> ApiRouter<Arc<AppState>> {
    let completions = post_with(chat::completions, |route| {
        let route = route.describe("chat", Tag::Chat, "A chat completion, whole or streamed.");
        let route = route.description(
            "A request whose messages have `id` and `timestamp` is answered in canonical form, any other in \
             OpenAI's. With `stream` the response is server-sent events.",
        );
        let route = route.input::<Json<schema::ChatRequest>>();
        let route = with_stream(route.response::<200, axum::Json<ChatAnswer>>());
        let continues = "`true`: the task continues when the client disconnects; `false`: it is canceled. \
                         Defaults to `true` with an `Idempotency-Key`, else to `false`.";
        let route = route.with_idempotency_key().header(
            "X-Antiphon-Continue",
            continues,
            json_schema!({ "type": "boolean" }),
        );
        with_errors(route, &[400, 403, 404, 408, 409, 410, 413, 415, 422, 429, 500, 502, 503])
    });
    let list = move |state: State<Arc<AppState>>, agents: AnswerAgents, headers: HeaderMap| async move {
        models::list(state, &agents, headers, other)
    };
    let list = get_with(list, |route| {
        let summary = "Lists the agents and models that a completion can name.";
        let route = route.describe("list_models", Tag::Chat, summary);
        route.response::<200, axum::Json<Models>>()
    });
    let show = move |state: State<Arc<AppState>>,
                     agents: AnswerAgents,
                     id: Path<String>,
                     headers: HeaderMap| async move {
        models::show(state, &agents, id, headers, other)
    };
    let show = get_with(show, |route| {
        let route = route.describe("show_model", Tag::Chat, "An agent or a model.");
        with_errors(route.response::<200, axum::Json<Model>>(), &[404])
    });
    responses::routes()
        .api_route(CHAT, completions)
        .api_route("/v1/models", list)
        .api_route("/v1/models/{*id}", show)
}

#[cfg(test)]
mod tests {
    use antiphon_interface_transport::openapi::undescribed_paths;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        assert_eq!(undescribed_paths(interface()), Vec::<String>::new());
    }
}
