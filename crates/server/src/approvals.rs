//! Questions to a person, and their answers.

use std::sync::Arc;

use antiphon_core::port::WhichApprovals;
use antiphon_core::{Approval, ApprovalId, Decision};
use antiphon_runtime::OrchestratorError;
use axum::extract::State;
use serde::{Deserialize, Serialize};

use crate::api_error::ApiError;
use crate::caller::Decider;
use crate::json::Json;
use crate::named::{Asked, Named};
use crate::room::Room;

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    #[serde(default)]
    all: bool,
}

#[derive(Serialize)]
pub(crate) struct Approvals {
    approvals: Vec<Approval>,
}

pub(crate) async fn list(
    State(room): State<Arc<Room>>,
    Asked(query): Asked<ListQuery>,
) -> Result<axum::Json<Approvals>, ApiError> {
    let which = if query.all { WhichApprovals::All } else { WhichApprovals::Pending };
    let approvals = room.doors.orchestrator.approvals(which).await?;
    Ok(axum::Json(Approvals { approvals }))
}

#[derive(Deserialize)]
pub(crate) struct Deciding {
    decision: Decision,
    #[serde(default)]
    comment: Option<String>,
}

pub(crate) async fn decide(
    State(room): State<Arc<Room>>,
    Decider { by }: Decider,
    Named(approval_id): Named<ApprovalId>,
    Json(deciding): Json<Deciding>,
) -> Result<axum::Json<Approval>, ApiError> {
    if deciding.decision == Decision::Expire {
        return Err(ApiError::invalid("`decision`: only the clock says `expire`"));
    }
    let orchestrator = &room.doors.orchestrator;
    orchestrator.decide(&approval_id, deciding.decision, &by, deciding.comment).await?;
    let decided = orchestrator.approvals(WhichApprovals::One(approval_id.clone())).await?;
    let none = OrchestratorError::NoApproval { approval_id };
    decided.into_iter().next().map(axum::Json).ok_or_else(|| none.into())
}
