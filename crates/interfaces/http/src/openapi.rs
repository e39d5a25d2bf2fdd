//! What the API says of itself: an `OpenAPI` document made from the routes, and a page made from the
//! document. Both are made once, when the server starts, and anybody may read them.
//!
//! What a handler takes and gives is read from its types. A route adds its name, its summary and the
//! ways it fails ([`Telling`]); what the [guard](crate::guard) asks of everybody is added to all of them.

mod document;
mod page;
mod refusals;
mod telling;

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::Extension;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

pub(crate) use self::document::Document;
pub(crate) use self::refusals::fails;
pub(crate) use self::telling::{LEVEL, STREAM, Tag, Telling, in_path, streamed};
use crate::room::AppState;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let json = get_with(json, |route| {
        let route = route.told("openapi", Tag::About, "This description, as OpenAPI 3.1.");
        route.answers(200, "application/json", "The document.")
    });
    let docs = get_with(page, |route| {
        let route = route.told("docs", Tag::About, "This description, as a page to read.");
        route.answers(200, "text/html", "The page.")
    });
    ApiRouter::new().api_route("/openapi.json", json).api_route("/docs", docs)
}

async fn json(Extension(document): Extension<Arc<Document>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], document.json()).into_response()
}

async fn page(Extension(document): Extension<Arc<Document>>) -> Response {
    let head = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, page::policy()),
    ];
    (head, document.page()).into_response()
}
