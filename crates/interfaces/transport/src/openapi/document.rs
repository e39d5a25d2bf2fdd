//! The `OpenAPI` document of all routes, completed with the names of path parameters and with what the guard
//! demands of every request.

use std::sync::Arc;

use antiphon_core::ErrorResponse;
use axum::Router;
use axum::body::Bytes;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::error_responses::{add_errors, components};
use super::generator::{ApiRouter, Info, OpenApi, in_context};
use super::operation::{LEVEL, PATH_PARAMETER, Tag};
use super::page;
use crate::access::caller::level_for;
use crate::access::route_access::RouteAccess;
use crate::interface::Interface;
use crate::state::AppState;

const ABOUT: &str = "Antiphon runs tasks of agents and loses none. All routes but `/health…`, `/openapi.json` and \
    `/docs` need the token or an API key, as `Authorization: Bearer KEY` or `ApiKey KEY`. Every error of \
    the native routes is an `ErrorResponse`. Responses to a request with an API key carry \
    `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.";

/// The document, and the page that is made from it.
pub struct Document {
    json: Bytes,
    page: Bytes,
}

impl Document {
    /// The router of described routes, and their document.
    pub(crate) fn of(
        described: ApiRouter<Arc<AppState>>,
        access: &RouteAccess,
    ) -> (Router<Arc<AppState>>, Self) {
        let (router, document) = generate(described, access);
        let page = page::render(&document).into_string();
        (router, Self { json: document.to_string().into(), page: page.into() })
    }

    pub(super) fn json(&self) -> Bytes {
        self.json.clone()
    }

    pub(super) fn page(&self) -> Bytes {
        self.page.clone()
    }
}

fn generate(
    described: ApiRouter<Arc<AppState>>,
    access: &RouteAccess,
) -> (Router<Arc<AppState>>, Value) {
    let mut api = OpenApi {
        info: Info {
            title: "Antiphon".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: Some(ABOUT.to_owned()),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let router = described.finish_api_with(&mut api, |api| {
        in_context(|context| context.schema.subschema_for::<ErrorResponse>());
        api
    });
    // Every value of the document has a JSON form.
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    document["tags"] = Tag::ALL
        .iter()
        .map(|tag| json!({ "name": tag.name(), "description": tag.description() }))
        .collect();
    document["components"]["responses"] = components();
    document["components"]["securitySchemes"] = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "The token, or an API key." },
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "The same, as `ApiKey KEY`.",
        },
    });
    let paths = document["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let paths = paths.into_iter().map(|(path, item)| path_item(access, &path, item));
    document["paths"] = Value::Object(paths.collect());
    (router, document)
}

fn path_item(access: &RouteAccess, path: &str, mut item: Value) -> (String, Value) {
    for (method, operation) in item.as_object_mut().into_iter().flatten() {
        if let (Ok(method), Some(operation)) =
            (method.to_uppercase().parse(), operation.as_object_mut())
        {
            name_path_parameters(path, operation);
            add_guard(access, path, &method, operation);
        }
    }
    // OpenAPI has no wildcards.
    (path.replace("{*", "{"), item)
}

/// Names and describes the path parameters, whose names only the route knows.
fn name_path_parameters(path: &str, operation: &mut Map<String, Value>) {
    for (begin, _) in path.match_indices('{') {
        let Some((name, _)) = path[begin + 1..].split_once('}') else { return };
        let name = name.trim_start_matches('*');
        let description = describe_path_parameter(name, &path[..begin]);
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        let Some(parameters) = parameters.as_array_mut() else { return };
        match parameters.iter_mut().find(|parameter| parameter["name"] == PATH_PARAMETER) {
            Some(parameter) => {
                parameter["name"] = json!(name);
                parameter["description"] = json!(description);
            }
            None => parameters.push(json!({
                "name": name, "in": "path", "required": true, "description": description,
                "schema": { "type": "string" },
            })),
        }
    }
}

/// What a path parameter is: what its name says, or what the collection before it holds.
fn describe_path_parameter(name: &str, before: &str) -> &'static str {
    let of_collection = match before.trim_end_matches('/').rsplit('/').next() {
        Some("models") => "Name of the model: of an agent, or `PROVIDER/MODEL`.",
        Some("tasks") => "Id of the task.",
        Some("requests") => "Id of the request.",
        Some("sessions") => "Id of the session.",
        Some("approvals") => "Id of the approval.",
        Some("responses") => "Id of the response.",
        _ => "Id.",
    };
    match name {
        "name" | "agent" => "Name of the agent.",
        "source" => "Name of the source that the event comes from.",
        "operation" => {
            "The operation, or the task and its operation, as the A2A specification names them."
        }
        _ => of_collection,
    }
}

/// Adds what the guard demands.
fn add_guard(
    access: &RouteAccess,
    path: &str,
    method: &Method,
    operation: &mut Map<String, Value>,
) {
    if access.is_open(path, None) {
        operation.insert("security".to_owned(), json!([]));
        operation.insert("description".to_owned(), json!("Needs no credentials."));
        add_errors(operation, &[403, 431]);
        return;
    }
    if access.is_signed(method, Some(path)) {
        operation.insert("security".to_owned(), json!([]));
        operation.insert(
            "description".to_owned(),
            json!(
                "Needs a signature made with the secret of the source, and no other credentials."
            ),
        );
        add_errors(operation, &[401, 403, 429, 431, 500, 503]);
        return;
    }
    let level = level_for(method).to_string();
    let level = operation.entry(LEVEL).or_insert_with(|| json!(level)).clone();
    let level = level.as_str().unwrap_or_default();
    let needs = format!("Needs the token, or an API key of level `{level}`.");
    let existing = operation.get("description").and_then(Value::as_str);
    let description = existing.map_or(needs.clone(), |text| format!("{text} {needs}"));
    operation.insert("description".to_owned(), json!(description));
    operation.insert("security".to_owned(), json!([{ "bearer": [] }, { "apiKey": [] }]));
    add_errors(operation, &[401, 403, 429, 431, 500, 503]);
}

/// Paths of routes without a description, for the tests of an interface.
#[doc(hidden)]
pub fn undescribed_paths(interface: Interface) -> Vec<String> {
    let (described, access) = RouteAccess::split(interface);
    let (router, document) = generate(described, &access);
    let mut undescribed = paths(&router);
    undescribed.retain(|path| !document["paths"][path.replace("{*", "{")].is_object());
    undescribed
}

/// Paths of a router, which only its debug output lists.
fn paths(router: &Router<Arc<AppState>>) -> Vec<String> {
    let quoted = |router: &Router<Arc<AppState>>| {
        let text = format!("{router:?}");
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter(|text| text.starts_with('/')).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut found = quoted(router);
    for always in quoted(&Router::new()) {
        if let Some(index) = found.iter().position(|path| *path == always) {
            found.swap_remove(index);
        }
    }
    found
}
