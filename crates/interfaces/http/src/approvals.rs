//! Questions to a person, and their answers.

use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use antiphon_api::{ApprovalList, ApprovalQuery, DecideApproval};
use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, ApprovalId, Decision};
use antiphon_runtime::OrchestratorError;
use axum::extract::State;

use crate::api_error::ApiError;
use crate::caller::Decider;
use crate::json::Json;
use crate::named::{Asked, Named};
use crate::openapi::{Tag, Telling};
use crate::room::AppState;

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let list = get_with(list, |route| {
        route.told("list_approvals", Tag::Approvals, "Questions to a person, the oldest first.")
    });
    let decide = post_with(decide, |route| {
        let route = route.told("decide_approval", Tag::Approvals, "Answers one.");
        route.description("An agent's key never answers.").fails(&[409])
    });
    ApiRouter::new().api_route("/v1/approvals", list).api_route("/v1/approvals/{id}", decide)
}

pub(crate) async fn list(
    State(room): State<Arc<AppState>>,
    Asked(query): Asked<ApprovalQuery>,
) -> Result<axum::Json<ApprovalList>, ApiError> {
    let which = if query.all { ApprovalSelector::All } else { ApprovalSelector::Pending };
    let approvals = room.doors.orchestrator.approvals(which).await?;
    Ok(axum::Json(ApprovalList { approvals }))
}

pub(crate) async fn decide(
    State(room): State<Arc<AppState>>,
    Decider { by }: Decider,
    Named(approval_id): Named<ApprovalId>,
    Json(deciding): Json<DecideApproval>,
) -> Result<axum::Json<Approval>, ApiError> {
    if deciding.decision == Decision::Expire {
        return Err(ApiError::invalid("`decision`: only the clock says `expire`"));
    }
    let orchestrator = &room.doors.orchestrator;
    orchestrator.decide(&approval_id, deciding.decision, &by, deciding.comment).await?;
    let decided = orchestrator.approvals(ApprovalSelector::One(approval_id.clone())).await?;
    let none = OrchestratorError::NoApproval { approval_id };
    decided.into_iter().next().map(axum::Json).ok_or_else(|| none.into())
}
