//! Approvals: listed, shown and decided. Who may decide one is in `access/caller.rs` of the transport (`Decider`).

use std::sync::Arc;

use antiphon_api::{ApprovalList, ApprovalQuery, DecideApproval};
use antiphon_core::port::{self, ApprovalSelector};
use antiphon_core::{Approval, ApprovalId, Decision};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{
    ApiError, AppState, Caller, Decider, Json, PathId, QueryParams,
};
use antiphon_runtime::OrchestratorError;
use axum::extract::State;

use crate::routes::{check_cursor, cut_page, page_size, unknown_cursor};

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let list = get_with(list, |route| {
        route.describe("list_approvals", Tag::Approvals, "Lists approvals, the oldest first.")
    });
    let one = get_with(show, |route| {
        route.describe("show_approval", Tag::Approvals, "One approval, pending or decided.")
    });
    let one = one.post_with(decide, |route| {
        let route = route.describe(
            "decide_approval",
            Tag::Approvals,
            "Decides an approval, or answers a question.",
        );
        route.description("An agent's key cannot decide.").fails(&[409])
    });
    ApiRouter::new().api_route("/v1/approvals", list).api_route("/v1/approvals/{id}", one)
}

pub(crate) async fn list(
    State(state): State<Arc<AppState>>,
    caller: Caller,
    QueryParams(query): QueryParams<ApprovalQuery>,
) -> Result<axum::Json<ApprovalList>, ApiError> {
    let limit = page_size(query.limit)?;
    let orchestrator = &state.deps.orchestrator;
    if let Some(cursor) = query.cursor.clone() {
        let found = orchestrator.approvals(ApprovalSelector::One(cursor)).await?.into_iter().next();
        let task_id = found.map(|approval| approval.task_id).ok_or_else(unknown_cursor)?;
        check_cursor(&state, &caller, &task_id).await?;
    }
    let which = match (query.all, caller.own_payer()) {
        (true, None) => ApprovalSelector::All,
        (false, None) => ApprovalSelector::Pending,
        (true, Some(payer)) => ApprovalSelector::AllOf(payer),
        (false, Some(payer)) => ApprovalSelector::PendingOf(payer),
    };
    // One more approval says that there is another page.
    let (after, one_more) = (query.cursor, limit.saturating_add(1));
    let page = port::ApprovalQuery { which, after, limit: one_more };
    let mut approvals = orchestrator.approvals(page).await?;
    let next_cursor = cut_page(&mut approvals, limit).map(|last| last.approval_id.clone());
    Ok(axum::Json(ApprovalList { approvals, next_cursor }))
}

pub(crate) async fn show(
    State(state): State<Arc<AppState>>,
    PathId(approval_id): PathId<ApprovalId>,
) -> Result<axum::Json<Approval>, ApiError> {
    find(&state, approval_id).await
}

async fn find(state: &AppState, approval_id: ApprovalId) -> Result<axum::Json<Approval>, ApiError> {
    let which = ApprovalSelector::One(approval_id.clone());
    let found = state.deps.orchestrator.approvals(which).await?;
    let none = OrchestratorError::NoApproval { approval_id };
    found.into_iter().next().map(axum::Json).ok_or_else(|| none.into())
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
    orchestrator.answer(&approval_id, &deciding.into(), &by).await?;
    find(&state, approval_id).await
}
