//! The document as a page to read: no script, nothing from elsewhere, and one style, which the policy of
//! the page knows by its hash.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::operation::Tag;

const STYLE: &str = include_str!("page.css");

/// What the page may load: its own style.
pub(super) fn policy() -> String {
    let hash = BASE64.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

pub(super) fn render(document: &Value) -> Markup {
    let title = text(&document["info"]["title"]);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) " API " small { (text(&document["info"]["version"])) } }
                    p { (prose(&document["info"]["description"])) }
                    p { "For programs: " a href="/openapi.json" { "openapi.json" } }
                    nav { ul { @for tag in Tag::ALL { li { a href={ "#" (tag.name()) } { (tag.name()) } } } } }
                }
                main {
                    @for tag in Tag::ALL { (about(document, tag)) }
                    (shapes(&document["components"]["schemas"]))
                }
            }
        }
    }
}

/// The routes of a tag.
fn about(document: &Value, tag: Tag) -> Markup {
    let paths = document["paths"].as_object().into_iter().flatten();
    let routes = paths.flat_map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| (path, method, operation))
    });
    let mine = routes.filter(|(_, _, operation)| operation["tags"][0] == tag.name());
    html! {
        section id=(tag.name()) {
            h2 { (tag.name()) }
            p { (tag.description()) }
            @for (path, method, operation) in mine { (route(document, path, method, operation)) }
        }
    }
}

fn route(document: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let parameters: Vec<&Value> =
        operation["parameters"].as_array().into_iter().flatten().collect();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    html! {
        article id=(text(&operation["operationId"])) {
            h3 { span class=(method) { (method.to_uppercase()) } " " code { (path) } }
            p { (prose(&operation["summary"])) " " small { (prose(&operation["description"])) } }
            @if !parameters.is_empty() {
                h4 { "Parameters" }
                dl {
                    @for parameter in parameters {
                        (field(
                            text(&parameter["name"]),
                            &parameter["schema"],
                            parameter["required"] == true,
                            &parameter["description"],
                            Some(text(&parameter["in"])),
                        ))
                    }
                }
            }
            @if !body.is_null() { h4 { "Body" } (shape(resolved(document, body))) }
            h4 { "Answers" }
            dl {
                @for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
                    (self::answer(status, resolved(document, answer)))
                }
            }
        }
    }
}

fn answer(status: &str, answer: &Value) -> Markup {
    html! {
        dt { code { (status) } }
        dd {
            (prose(&answer["description"]))
            @for (media, body) in answer["content"].as_object().into_iter().flatten() {
                " " small { (kind(&body["schema"])) @if media != "application/json" { ", " (media) } }
            }
        }
    }
}

/// All shapes that routes refer to.
fn shapes(schemas: &Value) -> Markup {
    html! {
        section id="shapes" {
            h2 { "shapes" }
            @for (name, schema) in schemas.as_object().into_iter().flatten() {
                article id={ "shape-" (name) } {
                    h3 { code { (name) } }
                    p { (prose(&schema["description"])) }
                    (shape(schema))
                }
            }
        }
    }
}

/// The fields of a shape, or what it is otherwise.
fn shape(schema: &Value) -> Markup {
    let needed = |name: &str| {
        schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name))
    };
    let variants = ["oneOf", "anyOf"].into_iter().find_map(|word| schema[word].as_array());
    html! {
        @if let Some(fields) = schema["properties"].as_object() {
            dl {
                @for (name, schema) in fields {
                    (field(name, schema, needed(name), &schema["description"], None))
                }
            }
        }
        @if let Some(variants) = variants {
            ul { @for variant in variants {
                li { (prose(&variant["description"])) " " @if variant["properties"].is_object() { (shape(variant)) } @else { (kind(variant)) } }
            } }
        } @else if !schema["properties"].is_object() { p { (kind(schema)) } }
    }
}

fn field(name: &str, schema: &Value, needed: bool, meaning: &Value, place: Option<&str>) -> Markup {
    html! {
        dt { code { (name) } @if needed { " " strong { "required" } } }
        dd { (prose(meaning)) " " small { (kind(schema)) @if let Some(place) = place { ", in the " (place) } } }
    }
}

/// What a schema is, in a few words.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
        return html! { a href={ "#shape-" (name) } { (name) } };
    }
    let several = ["anyOf", "oneOf", "allOf"].into_iter().find_map(|word| schema[word].as_array());
    if let Some(several) = several {
        return html! {
            @for (index, one) in several.iter().enumerate() { @if index > 0 { " or " } (kind(one)) }
        };
    }
    if !schema["const"].is_null() {
        return html! { code { (schema["const"]) } };
    }
    if let Some(words) = schema["enum"].as_array() {
        return html! {
            @for (index, word) in words.iter().enumerate() { @if index > 0 { ", " } code { (word) } }
        };
    }
    match &schema["type"] {
        Value::String(word) if word == "array" => html! { "list of " (kind(&schema["items"])) },
        Value::String(word) => {
            html! { (word) @if let Some(format) = schema["format"].as_str() { " (" (format) ")" } }
        }
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            html! { (words.join(" or ")) }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => html! { "anything" },
    }
}

/// What a reference means.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let place = value["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| document.pointer(place)).unwrap_or(value)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A text in which what stands between backticks is code.
fn prose(value: &Value) -> Markup {
    html! {
        @for (index, part) in text(value).split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}
