//! Approvals: listed and decided.

use std::sync::Arc;

use antiphon_api::{ApprovalList, ApprovalQuery, DecideApproval};
use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, ApprovalId, Decision};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with, post_with};
use antiphon_interface_transport::{ApiError, AppState, Decider, Json, PathId, QueryParams};
use antiphon_runtime::OrchestratorError;
use axum::extract::State;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let list = get_with(list, |route| {
        route.describe("list_approvals", Tag::Approvals, "Lists approvals, the oldest first.")
    });
    let decide = post_with(decide, |route| {
        let route = route.describe("decide_approval", Tag::Approvals, "Decides an approval.");
        route.description("An agent's key cannot decide.").fails(&[409])
    });
    ApiRouter::new().api_route("/v1/approvals", list).api_route("/v1/approvals/{id}", decide)
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    QueryParams(query): QueryParams<ApprovalQuery>,
) -> Result<axum::Json<ApprovalList>, ApiError> {
    let which = if query.all { ApprovalSelector::All } else { ApprovalSelector::Pending };
    let approvals = state.deps.orchestrator.approvals(which).await?;
    Ok(axum::Json(ApprovalList { approvals }))
}

pub(crate) async fn decide(
    State(state): State<Arc<AppState>>,
    Decider { by }: Decider,
    PathId(approval_id): PathId<ApprovalId>,
    Json(deciding): Json<DecideApproval>,
) -> Result<axum::Json<Approval>, ApiError> {
    if deciding.decision == Decision::Expire {
        return Err(ApiError::invalid(
            "`decision`: `expire` is not allowed: only time expires an approval",
        ));
    }
    let orchestrator = &state.deps.orchestrator;
    orchestrator.decide(&approval_id, deciding.decision, &by, deciding.comment).await?;
    let decided = orchestrator.approvals(ApprovalSelector::One(approval_id.clone())).await?;
    let none = OrchestratorError::NoApproval { approval_id };
    decided.into_iter().next().map(axum::Json).ok_or_else(|| none.into())
}
