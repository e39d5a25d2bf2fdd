//! Error responses in the document: each is defined once, and routes refer to it.

use serde_json::{Map, Value, json};

use super::generator::{DescribedStatus, Operation, ReferenceOr};

/// Status, name and description.
const ERRORS: [(u16, &str, &str); 14] = [
    (400, "BadRequest", "The request cannot be understood, or breaks a limit."),
    (401, "Unauthorized", "Missing or invalid token."),
    (
        403,
        "Forbidden",
        "Unknown host name, a page of another origin, or an API key that does not allow this.",
    ),
    (404, "NotFound", "There is no such resource."),
    (405, "MethodNotAllowed", "The route does not accept the method: see `allow`."),
    (408, "RequestTimeout", "The body took too long."),
    (
        409,
        "Conflict",
        "The state of the resource does not allow this: it has ended, or was decided before.",
    ),
    (413, "PayloadTooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The body is not JSON."),
    (422, "UnprocessableEntity", "The request is well formed, and cannot be done."),
    (
        429,
        "TooManyRequests",
        "Rate limit exceeded, too many open requests of the key, too many wrong keys, or the inbox is full: see \
         `retry-after`.",
    ),
    (431, "RequestHeaderFieldsTooLarge", "The head of the request is too large."),
    (500, "InternalServerError", "An internal error."),
    (
        503,
        "ServiceUnavailable",
        "The journal, the model or the API keys are unavailable, a spend limit is reached, or the response took too long.",
    ),
];

/// Adds error responses to an operation, unless it describes these statuses itself.
pub fn fails(operation: &mut Operation, statuses: &[u16]) {
    let responses = &mut operation.responses.get_or_insert_default().responses;
    for status in statuses {
        let error = ERRORS.iter().find(|(known, ..)| known == status);
        if let Some((_, name, _)) = error {
            let code = DescribedStatus::Code(*status);
            responses.entry(code).or_insert_with(|| ReferenceOr::ref_(&reference(name)));
        }
    }
}

/// The same, for an operation of a generated document.
pub(super) fn add_errors(operation: &mut Map<String, Value>, statuses: &[u16]) {
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    let Some(responses) = responses.as_object_mut() else { return };
    for (status, name, _) in ERRORS.iter().filter(|(status, ..)| statuses.contains(status)) {
        let entry = || json!({ "$ref": reference(name) });
        responses.entry(status.to_string()).or_insert_with(entry);
    }
    responses.sort_keys();
}

fn reference(name: &str) -> String {
    format!("#/components/responses/{name}")
}

/// All error responses, by name.
pub(super) fn components() -> Value {
    let response = |(status, name, meaning): &(u16, &str, &str)| {
        let schema = json!({ "$ref": "#/components/schemas/ErrorResponse" });
        let mut response = json!({ "description": meaning, "content": { "application/json": { "schema": schema } } });
        let header = match status {
            401 => Some(("WWW-Authenticate", "The authentication scheme.", "string")),
            405 => Some(("Allow", "Methods that the route accepts.", "string")),
            429 | 503 => Some(("Retry-After", "When to retry, in seconds.", "integer")),
            _ => None,
        };
        if let Some((name, meaning, kind)) = header {
            let header =
                json!({ "description": meaning, "required": true, "schema": { "type": kind } });
            response["headers"] = json!({ name: header });
        }
        ((*name).to_owned(), response)
    };
    Value::Object(ERRORS.iter().map(response).collect())
}
