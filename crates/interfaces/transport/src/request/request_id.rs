//! The id of a request, for APIs whose clients show one: that of its task, or one that only the log has.

use antiphon_core::port::{IdSource, RandomIds};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Names the task of a response.
const TASK: HeaderName = HeaderName::from_static("x-antiphon-task");

/// Headers that an id is sent in, by APIs.
const NAMES: [&str; 2] = ["x-request-id", "request-id"];

/// Adds the header `name` to a response, unless it is there.
pub(crate) fn set(headers: &mut HeaderMap, name: &'static str) {
    let text = match headers.get(TASK).and_then(|task| task.to_str().ok()) {
        Some(task) => format!("req_{task}"),
        None => format!("req_{}", RandomIds.next()),
    };
    if let Ok(id) = HeaderValue::from_str(&text) {
        headers.entry(HeaderName::from_static(name)).or_insert(id);
    }
}

/// The id in a response; empty when it has none.
pub(crate) fn of(headers: &HeaderMap) -> &str {
    let id = NAMES.iter().find_map(|name| headers.get(*name));
    id.and_then(|id| id.to_str().ok()).unwrap_or_default()
}
