//! The `OpenAPI` document: complete, public, and equal to `docs/openapi.json`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::client::{Reply, request, say};
use crate::world::{TOKEN, TestServer};

/// Asks as a stranger.
async fn ask(server: &TestServer, path: &str) -> Reply {
    let text = request(server.address, "GET", path, None);
    say(server.address, &text.replacen(&format!("authorization: Bearer {TOKEN}\r\n"), "", 1)).await
}

async fn document(server: &TestServer) -> Value {
    let reply = ask(server, "/openapi.json").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: application/json"), "{reply:?}");
    reply.json()
}

/// Every operation, with its path and method.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    });
    operations.collect()
}

#[tokio::test]
async fn the_document_in_docs_is_the_one_that_is_served() {
    let server = TestServer::new().await;
    let written = serde_json::to_string_pretty(&document(&server).await).unwrap() + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/openapi.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == written,
        "docs/openapi.json is old: UPDATE=1 cargo nextest run -p antiphon-http openapi"
    );
    server.ended().await;
}

#[tokio::test]
async fn exactly_the_accepted_methods_of_a_route_are_described() {
    let server = TestServer::new().await;
    let document = document(&server).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let described: BTreeSet<String> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        let concrete = path.replace("{id}", "x").replace("{name}", "x");
        let reply = say(server.address, &request(server.address, "BREW", &concrete, None)).await;
        assert_eq!(reply.status, 405, "{path}: {reply:?}");
        let allow = reply.head.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap();
        let taken = allow.to_uppercase();
        // `GET` includes `HEAD`.
        let taken: BTreeSet<String> =
            taken.split(',').map(str::to_owned).filter(|method| method != "HEAD").collect();
        assert_eq!(taken, described, "{path}");
    }
    server.ended().await;
}

#[tokio::test]
async fn every_operation_has_an_id_a_summary_a_tag_and_its_security() {
    let server = TestServer::new().await;
    let document = document(&server).await;
    let mut names = BTreeSet::new();
    let mut open = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let place = format!("{method} {path}");
        assert!(names.insert(operation["operationId"].as_str().unwrap()), "{place}: twice");
        assert!(operation["summary"].as_str().unwrap().ends_with('.'), "{place}");
        let tags = document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]);
        assert!(tags.into_iter().any(|tag| *tag == operation["tags"][0]), "{place}");
        if operation["security"].as_array().unwrap().is_empty() {
            open.insert(path);
            continue;
        }
        let level = match (method, path) {
            ("post", "/v1/approvals/{id}" | "/v1/agents" | "/v1/budget/allow")
            | ("put" | "delete", "/v1/agents/{name}") => "admin",
            ("get", _) => "read",
            _ => "write",
        };
        assert_eq!(operation["x-level"], level, "{place}");
        for status in ["401", "403", "429", "500", "503"] {
            assert!(operation["responses"][status].is_object(), "{place}: {status}");
        }
    }
    let expected = [
        "/docs",
        "/health",
        "/health/live",
        "/health/ready",
        "/openapi.json",
        "/v1/events/{source}",
    ];
    assert_eq!(open, expected.into());
    server.ended().await;
}

#[tokio::test]
async fn every_reference_in_the_document_resolves() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let server = TestServer::new().await;
    let document = document(&server).await;
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for reference in found {
        let place = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{reference}");
    }
    server.ended().await;
}

#[tokio::test]
async fn the_page_shows_every_route_and_loads_nothing() {
    let server = TestServer::new().await;
    let document = document(&server).await;
    let reply = ask(&server, "/docs").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.head.contains("content-type: text/html; charset=utf-8"), "{reply:?}");
    let policy = "content-security-policy: default-src 'none'; style-src 'sha256-";
    assert!(reply.head.contains(policy), "{}", reply.head);
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let head = format!(
            "<article id=\"{id}\"><h3><span class=\"{method}\">{}</span> <code>{path}</code>",
            method.to_uppercase()
        );
        assert!(reply.body.contains(&head), "{method} {path}");
    }
    for forbidden in ["<script", " src=", "style=\"", "http:", "https:", "<link", "onclick"] {
        assert!(!reply.body.contains(forbidden), "{forbidden}");
    }
    // Every link within the page leads somewhere.
    for link in reply.body.split("href=\"#").skip(1) {
        let id = link.split('"').next().unwrap();
        assert!(reply.body.contains(&format!("id=\"{id}\"")), "{id}");
    }
    server.ended().await;
}

#[tokio::test]
async fn a_foreign_host_name_reads_neither_document_nor_page() {
    let server = TestServer::new().await;
    for path in ["/openapi.json", "/docs"] {
        let reply =
            say(server.address, &format!("GET {path} HTTP/1.0\r\nhost: evil.example\r\n\r\n"))
                .await;
        assert_eq!((reply.status, reply.code().as_str()), (403, "FORBIDDEN"), "{path}");
    }
    server.ended().await;
}

/// Whether a field says what a caller must know: by itself, by the type that it names, or as the only field of a
/// variant that says so. A constant says it by its value.
fn is_described(document: &Value, field: &Value, object: &Value) -> bool {
    let says = |schema: &Value| schema["description"].as_str().is_some_and(|text| !text.is_empty());
    let named =
        field["$ref"].as_str().and_then(|name| document.pointer(name.trim_start_matches('#')));
    let is_only = object["properties"].as_object().is_some_and(|fields| fields.len() == 1);
    says(field) || named.is_some_and(says) || !field["const"].is_null() || (is_only && says(object))
}

/// Fields without a description, by their place in the document.
fn undescribed(document: &Value, part: &Value, place: &str, found: &mut Vec<String>) {
    for (name, field) in part["properties"].as_object().into_iter().flatten() {
        if !is_described(document, field, part) {
            found.push(format!("{place}/{name}"));
        }
    }
    let keyed = part.as_object().into_iter().flatten();
    let keyed = keyed.map(|(name, inner)| (name.clone(), inner));
    let listed = part.as_array().into_iter().flatten().enumerate();
    let listed = listed.map(|(index, inner)| (index.to_string(), inner));
    for (name, inner) in keyed.chain(listed) {
        undescribed(document, inner, &format!("{place}/{name}"), found);
    }
}

#[tokio::test]
async fn every_field_parameter_and_type_has_a_description() {
    let server = TestServer::new().await;
    let document = document(&server).await;
    let mut found = Vec::new();
    undescribed(&document, &document, "", &mut found);
    let says = |part: &Value| part["description"].as_str().is_some_and(|text| text.ends_with('.'));
    let types = document["components"]["schemas"].as_object().unwrap();
    found.extend(types.iter().filter(|(_, schema)| !says(schema)).map(|(name, _)| name.clone()));
    for (path, item) in document["paths"].as_object().unwrap() {
        let parameters = item
            .as_object()
            .unwrap()
            .values()
            .flat_map(|operation| operation["parameters"].as_array().into_iter().flatten());
        let silent = parameters.filter(|parameter| !says(parameter));
        found.extend(silent.map(|parameter| format!("{path}: {}", parameter["name"])));
    }
    assert_eq!(found, [""; 0]);
    server.ended().await;
}
