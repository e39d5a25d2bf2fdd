//! Which request goes where. Each module brings its routes, described: one that is not in the `OpenAPI`
//! document fails a test.

use std::sync::Arc;

use aide::axum::ApiRouter;
use antiphon_core::ErrorCode;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::{Extension, Router, middleware};

use crate::api_error::ApiError;
use crate::openapi::Document;
use crate::room::AppState;
use crate::{
    agents, approvals, budget, chat, diff, events, guard, health, inbox, invocations, live,
    metrics, openapi, orders, requests, rest, sessions, tasks, usage, webhooks,
};

/// Every route.
pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    ApiRouter::new()
        .merge(tasks::routes())
        .merge(rest::routes())
        .merge(events::routes())
        .merge(orders::routes())
        .merge(diff::routes())
        .merge(invocations::routes())
        .merge(agents::routes())
        .merge(live::routes())
        .merge(inbox::routes())
        .merge(requests::routes())
        .merge(webhooks::routes())
        .merge(sessions::routes())
        .merge(approvals::routes())
        .merge(usage::routes())
        .merge(budget::routes())
        .merge(chat::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(openapi::routes())
}

pub(crate) fn router(room: Arc<AppState>) -> Router {
    let (router, document) = Document::of(routes());
    router
        .fallback(nowhere)
        .method_not_allowed_fallback(not_so)
        .layer(Extension(Arc::new(document)))
        .layer(DefaultBodyLimit::max(room.doors.limits.body_bytes_max))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&room), metrics::count))
        .with_state(room)
}

async fn nowhere() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "there is nothing here: see /docs")
}

async fn not_so() -> ApiError {
    ApiError::with_status(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidRequest,
        "this place does not take this method: see the header `allow`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths of a router, which it tells nobody but a debugger.
    fn told(router: &Router<Arc<AppState>>) -> Vec<String> {
        let told = format!("{router:?}");
        let quoted = told.split('"').skip(1).step_by(2);
        quoted.filter(|text| text.starts_with('/')).map(str::to_owned).collect()
    }

    /// Those that are there because somebody put them there.
    fn paths(router: &Router<Arc<AppState>>) -> Vec<String> {
        let mut found = told(router);
        for always in told(&Router::new()) {
            if let Some(index) = found.iter().position(|path| *path == always) {
                found.swap_remove(index);
            }
        }
        found
    }

    #[test]
    fn every_route_is_in_the_document() {
        let (router, document) = Document::of(routes());
        let found = paths(&router);
        assert!(found.len() > 20, "{found:?}");
        let document: serde_json::Value =
            serde_json::from_slice(&document.json()).expect("a document");
        for path in found {
            let described = &document["paths"][path.replace("{*", "{")];
            assert!(described.is_object(), "`{path}` is not described: use `api_route`");
        }
    }

    #[test]
    fn a_route_that_is_not_described_is_found() {
        let (router, _) = Document::of(routes().route("/v1/secret", axum::routing::get(nowhere)));
        assert!(paths(&router).contains(&"/v1/secret".to_owned()));
    }
}
