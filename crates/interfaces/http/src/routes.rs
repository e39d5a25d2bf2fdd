//! The routes of the native API, one module per resource.

pub(crate) mod agents;
mod approvals;
pub(crate) mod budget;
mod health;
mod invocations;
mod journal;
mod metrics;
pub(crate) mod runs;
mod sessions;
pub(crate) mod tasks;
mod usage;

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::TaskId;
use antiphon_interface_transport::openapi::ApiRouter;
use antiphon_interface_transport::{ApiError, AppState, Caller, Interface, OwnWork};
use axum::Extension;
use axum::http::StatusCode;

use crate::webhooks::{self, ConfiguredWebhooks, Webhooks};

/// Items in one page, at most.
pub const PAGE_MAX: usize = 1000;

/// Items in one page, by default.
const PAGE_DEFAULT: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// All routes. Without webhooks no event is accepted.
pub fn interface(webhooks: Option<Webhooks>) -> Interface {
    let webhooks = ConfiguredWebhooks(webhooks.map(Arc::new));
    Interface {
        open: vec!["/health", "/health/live", "/health/ready"],
        signed: vec![webhooks::ROUTE],
        agent_writable: vec!["/v1/agents/{name}/inbox", "/v1/tasks", "/v1/tasks/{id}/messages"],
        admin: vec!["/v1/agents", "/v1/agents/{name}", "/v1/approvals/{id}", "/v1/budget/allow"],
        own_work: OWN_WORK.to_vec(),
        ..Interface::new(move || routes(webhooks))
    }
}

/// Routes for keys that see their own work alone.
const OWN_WORK: [(&str, OwnWork); 24] = [
    ("/v1/tasks", OwnWork::Handler),
    ("/v1/tasks/cancel", OwnWork::Handler),
    ("/v1/tasks/{id}", OwnWork::Task),
    ("/v1/tasks/{id}/tree", OwnWork::Task),
    ("/v1/tasks/{id}/rest", OwnWork::Task),
    ("/v1/tasks/{id}/events", OwnWork::Task),
    ("/v1/tasks/{id}/diff", OwnWork::Task),
    ("/v1/tasks/{id}/cancel", OwnWork::Task),
    ("/v1/tasks/{id}/interrupt", OwnWork::Task),
    ("/v1/tasks/{id}/pause", OwnWork::Task),
    ("/v1/tasks/{id}/resume", OwnWork::Task),
    ("/v1/tasks/{id}/messages", OwnWork::Task),
    ("/v1/tasks/{id}/tool_results", OwnWork::Task),
    ("/v1/events", OwnWork::Handler),
    ("/v1/journal", OwnWork::Handler),
    ("/v1/invocations", OwnWork::Handler),
    ("/v1/sessions", OwnWork::Handler),
    ("/v1/sessions/{id}", OwnWork::Session),
    ("/v1/sessions/{id}/export", OwnWork::Session),
    ("/v1/sessions/{id}/fork", OwnWork::Session),
    ("/v1/approvals", OwnWork::Handler),
    ("/v1/approvals/{id}", OwnWork::Approval),
    // Definitions belong to the project; every key reads them.
    ("/v1/agents", OwnWork::Handler),
    ("/v1/agents/{name}", OwnWork::Handler),
];

fn routes(webhooks: ConfiguredWebhooks) -> ApiRouter<Arc<AppState>> {
    ApiRouter::new()
        .merge(tasks::routes())
        .merge(runs::routes())
        .merge(invocations::routes())
        .merge(journal::routes())
        .merge(agents::routes())
        .merge(webhooks::routes())
        .merge(sessions::routes())
        .merge(approvals::routes())
        .merge(usage::routes())
        .merge(budget::routes())
        .merge(health::routes())
        .merge(metrics::routes())
        .layer(Extension(webhooks))
        .layer(Extension(metrics::ScrapeLock::default()))
}

/// The size of a page: [`PAGE_DEFAULT`] when absent. Refuses more than [`PAGE_MAX`].
fn page_size(limit: Option<NonZeroUsize>) -> Result<NonZeroUsize, ApiError> {
    let limit = limit.unwrap_or(PAGE_DEFAULT);
    if limit.get() > PAGE_MAX {
        return Err(ApiError::invalid(format!("`limit`: at most {PAGE_MAX}")));
    }
    Ok(limit)
}

/// Cuts a list that was read with one item more than a page has. Returns the last item of the page when there is
/// another page.
fn cut_page<T>(items: &mut Vec<T>, limit: NonZeroUsize) -> Option<&T> {
    let has_next = items.len() > limit.get();
    items.truncate(limit.get());
    items.last().filter(|_| has_next)
}

/// Refuses a task as a cursor that no page can have given to the caller.
async fn check_cursor(state: &AppState, caller: &Caller, task_id: &TaskId) -> Result<(), ApiError> {
    let found = state.summary_for(caller, task_id).await;
    found.map(drop).map_err(|error| {
        if error.status() == StatusCode::NOT_FOUND { unknown_cursor() } else { error }
    })
}

/// The refusal of a cursor that no page gave.
fn unknown_cursor() -> ApiError {
    ApiError::invalid("`cursor`: use `next_cursor` of the previous page")
}

#[cfg(test)]
mod tests {
    use antiphon_interface_transport::openapi::undescribed_paths;

    use super::*;

    #[test]
    fn every_route_is_in_the_document() {
        assert_eq!(undescribed_paths(interface(None)), Vec::<String>::new());
    }

    #[test]
    fn a_route_without_a_description_is_found() {
        let routes = || {
            let route = axum::routing::get(|| async {});
            routes(ConfiguredWebhooks(None)).route("/v1/secret", route)
        };
        let found = undescribed_paths(Interface::new(routes));
        assert_eq!(found, ["/v1/secret"]);
    }
}
