//! The `OpenAPI` document of the routes, finished: what stands in the path has its name, and what the guard
//! asks of everybody is said of every route.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::generate::in_context;
use aide::openapi::{Info, OpenApi};
use antiphon_core::ErrorResponse;
use axum::Router;
use axum::body::Bytes;
use axum::http::Method;
use serde_json::{Map, Value, json};

use super::page;
use super::refusals::{components, fail_too};
use super::telling::{HERE, LEVEL, Tag};
use crate::caller::level_for;
use crate::guard::is_open;
use crate::room::AppState;
use crate::webhooks;

const ABOUT: &str = "Antiphon works on tasks and loses none. Everything but `/health…`, `/openapi.json` and \
    `/docs` needs the token or a key, as `Authorization: Bearer KEY` or `ApiKey KEY`. Every error of \
    the native routes is an `ErrorResponse`. Answers to a key carry `X-RateLimit-Limit`, \
    `X-RateLimit-Remaining` and `X-RateLimit-Reset`.";

/// The document, and the page that is made of it.
pub(crate) struct Document {
    json: Bytes,
    page: Bytes,
}

impl Document {
    /// The routes, and what they say of themselves.
    pub(crate) fn of(all: ApiRouter<Arc<AppState>>) -> (Router<Arc<AppState>>, Self) {
        let (router, document) = described(all);
        let page = page::render(&document).into_string();
        (router, Self { json: document.to_string().into(), page: page.into() })
    }

    pub(crate) fn json(&self) -> Bytes {
        self.json.clone()
    }

    pub(super) fn page(&self) -> Bytes {
        self.page.clone()
    }
}

fn described(all: ApiRouter<Arc<AppState>>) -> (Router<Arc<AppState>>, Value) {
    let mut api = OpenApi {
        info: Info {
            title: "Antiphon".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            description: Some(ABOUT.to_owned()),
            ..Info::default()
        },
        ..OpenApi::default()
    };
    let router = all.finish_api_with(&mut api, |api| {
        in_context(|context| context.schema.subschema_for::<ErrorResponse>());
        api
    });
    // Nothing in it has no JSON.
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    document["tags"] = Tag::ALL
        .iter()
        .map(|tag| json!({ "name": tag.name(), "description": tag.meaning() }))
        .collect();
    document["components"]["responses"] = components();
    document["components"]["securitySchemes"] = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "The token, or a key." },
        "apiKey": {
            "type": "apiKey", "in": "header", "name": "Authorization",
            "description": "The same, written as `ApiKey KEY`.",
        },
    });
    let paths = document["paths"].as_object_mut().map(std::mem::take).unwrap_or_default();
    let paths = paths.into_iter().map(|(path, item)| path_item(&path, item));
    document["paths"] = Value::Object(paths.collect());
    (router, document)
}

fn path_item(path: &str, mut item: Value) -> (String, Value) {
    for (method, operation) in item.as_object_mut().into_iter().flatten() {
        if let (Ok(method), Some(operation)) =
            (method.to_uppercase().parse(), operation.as_object_mut())
        {
            name_here(path, operation);
            guarded(path, &method, operation);
        }
    }
    // A wildcard of ours, which OpenAPI does not know.
    (path.replace("{*", "{"), item)
}

/// Gives what stands in the path its name.
fn name_here(path: &str, operation: &mut Map<String, Value>) {
    let mut names = path.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    let Some((name, _)) = names.next() else { return };
    let name = json!(name.trim_start_matches('*'));
    let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
    let Some(parameters) = parameters.as_array_mut() else { return };
    match parameters.iter_mut().find(|parameter| parameter["name"] == HERE) {
        Some(here) => here["name"] = name,
        None => parameters.push(json!({
            "name": name, "in": "path", "required": true, "schema": { "type": "string" },
        })),
    }
}

/// Says what the guard asks.
fn guarded(path: &str, method: &Method, operation: &mut Map<String, Value>) {
    if is_open(path) {
        operation.insert("security".to_owned(), json!([]));
        operation.insert("description".to_owned(), json!("Open to everybody."));
        fail_too(operation, &[403]);
        return;
    }
    if webhooks::is_signed(method, Some(path)) {
        operation.insert("security".to_owned(), json!([]));
        operation.insert("description".to_owned(), json!("Open to whoever knows the secret."));
        fail_too(operation, &[401, 403, 429, 500, 503]);
        return;
    }
    let level = level_for(method).to_string();
    let level = operation.entry(LEVEL).or_insert_with(|| json!(level)).clone();
    let level = level.as_str().unwrap_or_default();
    let needs = format!("Needs the token, or a key of level `{level}`.");
    let said = operation.get("description").and_then(Value::as_str);
    let description = said.map_or(needs.clone(), |said| format!("{said} {needs}"));
    operation.insert("description".to_owned(), json!(description));
    operation.insert("security".to_owned(), json!([{ "bearer": [] }, { "apiKey": [] }]));
    fail_too(operation, &[401, 403, 429, 500, 503]);
}
