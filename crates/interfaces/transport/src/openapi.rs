//! The `OpenAPI` document of all interfaces, and a page made from it. Both are generated once, when the server
//! starts, and need no credentials.
//!
//! The types of a handler describe its parameters, body and responses. A route adds its name, its summary and
//! the ways it fails ([`DescribeRoute`]). What the guard demands is added to every route.

mod document;
mod error_responses;
mod generator;
mod operation;
mod page;

use std::sync::Arc;

use axum::Extension;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

pub use self::document::{Document, undescribed_paths};
pub use self::error_responses::fails;
pub use self::generator::*;
pub use self::operation::{DescribeRoute, EVENT_STREAM, LEVEL, Tag, event_schema, path_parameter};
use crate::interface::Interface;
use crate::state::AppState;

/// The routes of the document and of the page.
pub(crate) fn interface() -> Interface {
    Interface { open: vec!["/openapi.json", "/docs"], ..Interface::new(routes) }
}

fn routes() -> ApiRouter<Arc<AppState>> {
    let json = get_with(json, |route| {
        let route = route.describe("openapi", Tag::About, "This description, as OpenAPI 3.1.");
        route.responds(200, "application/json", "The document.")
    });
    let docs = get_with(page, |route| {
        let route = route.describe("docs", Tag::About, "This description, as an HTML page.");
        route.responds(200, "text/html", "The page.")
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
