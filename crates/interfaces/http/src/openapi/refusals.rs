//! The ways a request fails, as the document has them: each once, and routes refer to it.

use aide::openapi::{Operation, ReferenceOr, StatusCode};
use serde_json::{Map, Value, json};

/// Status, name and meaning.
const REFUSALS: [(u16, &str, &str); 13] = [
    (400, "BadRequest", "It cannot be understood, or breaks a limit."),
    (401, "Unauthorized", "No token and no key, or one that is not good."),
    (
        403,
        "Forbidden",
        "A name it does not go by, a page from elsewhere, or a key of too low a level.",
    ),
    (404, "NotFound", "There is no such thing."),
    (405, "MethodNotAllowed", "This place does not take this method: see `allow`."),
    (408, "RequestTimeout", "The body took too long."),
    (409, "Conflict", "It has ended, it was answered, or it stands otherwise."),
    (413, "PayloadTooLarge", "It is too large."),
    (415, "UnsupportedMediaType", "The body has to be JSON."),
    (422, "UnprocessableEntity", "It makes no sense."),
    (429, "TooManyRequests", "A key is used too often, or too much waits: see `retry-after`."),
    (500, "InternalServerError", "A fault of ours."),
    (
        503,
        "ServiceUnavailable",
        "The journal, a model or the keys are not there, or it takes too long.",
    ),
];

/// Says that an operation may fail so, unless it says how itself.
pub(crate) fn fails(operation: &mut Operation, statuses: &[u16]) {
    let responses = &mut operation.responses.get_or_insert_default().responses;
    for status in statuses {
        let refusal = REFUSALS.iter().find(|(known, ..)| known == status);
        if let Some((_, name, _)) = refusal {
            let code = StatusCode::Code(*status);
            responses.entry(code).or_insert_with(|| ReferenceOr::ref_(&place(name)));
        }
    }
}

/// The same, in a document that is made.
pub(super) fn fail_too(operation: &mut Map<String, Value>, statuses: &[u16]) {
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    let Some(responses) = responses.as_object_mut() else { return };
    for (status, name, _) in REFUSALS.iter().filter(|(status, ..)| statuses.contains(status)) {
        let reference = || json!({ "$ref": place(name) });
        responses.entry(status.to_string()).or_insert_with(reference);
    }
    responses.sort_keys();
}

fn place(name: &str) -> String {
    format!("#/components/responses/{name}")
}

/// All of them, by name.
pub(super) fn components() -> Value {
    let refusal = |(status, name, meaning): &(u16, &str, &str)| {
        let schema = json!({ "$ref": "#/components/schemas/ErrorResponse" });
        let mut response = json!({ "description": meaning, "content": { "application/json": { "schema": schema } } });
        let header = match status {
            401 => Some(("WWW-Authenticate", "How to come in.", "string")),
            405 => Some(("Allow", "The methods that it takes.", "string")),
            429 | 503 => Some(("Retry-After", "When to come back, in seconds.", "integer")),
            _ => None,
        };
        if let Some((name, meaning, kind)) = header {
            let header =
                json!({ "description": meaning, "required": true, "schema": { "type": kind } });
            response["headers"] = json!({ name: header });
        }
        ((*name).to_owned(), response)
    };
    Value::Object(REFUSALS.iter().map(refusal).collect())
}
