//! `POST /v1/invocations`: dispatches 1..N targets, each of which becomes a task.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_core::{Invocation, InvocationResult, Join};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, post_with};
use antiphon_interface_transport::{ApiError, AppState, Caller, Json, QueryParams, idempotency};
use antiphon_project::{Dispatch, check_invocation, invocation_results, joined_result};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::routes::tasks::wait::{WAIT_S_MAX, wait_time};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let invoke = post_with(invoke, |route| {
        let summary = "Dispatches targets, each of which becomes a task.";
        let route = route.describe("invoke", Tag::Tasks, summary);
        let route = route.with_idempotency_key().with_traceparent().fails(&[404, 409, 422]);
        let route = route.response_with::<200, axum::Json<InvocationResult>, _>(|response| {
            response.description("The results of all targets.")
        });
        route.response_with::<202, axum::Json<InvocationResult>, _>(|response| {
            response.description("The tasks, when they are detached or have not ended in time.")
        })
    });
    ApiRouter::new().api_route("/v1/invocations", invoke)
}

/// How long to wait for results.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "InvocationWait")]
pub(crate) struct WaitQuery {
    /// How long to wait for the results, in seconds; 30 when absent.
    #[schemars(range(max = WAIT_S_MAX))]
    wait_s: Option<NonZeroU32>,
}

async fn invoke(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<WaitQuery>,
    headers: HeaderMap,
    Json(invocation): Json<Invocation>,
) -> Result<(StatusCode, axum::Json<InvocationResult>), ApiError> {
    let timeout = wait_time(query.wait_s)?;
    let own_key = idempotency::own_key(&headers)?;
    let invocation = check_invocation(invocation)?;
    let join = invocation.get().join;
    let tracer = Arc::clone(&state);
    let dispatch = Dispatch {
        orchestrator: state.deps.orchestrator.clone(),
        task_factory: Arc::clone(&state.deps.task_factory),
        principal: caller.principal(),
        on_created: Arc::new(move |task_id| tracer.trace(&headers, task_id)),
    };
    let task_ids = Box::pin(dispatch.dispatch(invocation, own_key)).await?;
    let results = match join {
        // `check_invocation` refuses the last two.
        Join::Detached | Join::Any | Join::Quorum { .. } => None,
        Join::Single | Join::All => tokio::select! {
            () = state.closing.cancelled() => None,
            waited = tokio::time::timeout(
                timeout,
                invocation_results(&state.deps.orchestrator, &task_ids),
            ) => waited.ok().transpose()?.flatten(),
        },
    };
    Ok(match results {
        None => (StatusCode::ACCEPTED, axum::Json(InvocationResult::TaskIds { task_ids })),
        Some(results) => (StatusCode::OK, axum::Json(joined_result(join, results))),
    })
}
