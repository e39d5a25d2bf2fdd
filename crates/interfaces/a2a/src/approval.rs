//! Approvals that a task waits for, as A2A shows and answers them.
//!
//! The status message of a task in `TASK_STATE_INPUT_REQUIRED` has a part `{"data": {"approval": {"id", "toolName",
//! "arguments", "reason"}}}`. A message to the task with a part `{"data": {"approval": {"id", "decision"}}}` decides,
//! if the caller may decide: the owner, or a person's key of level `admin`. Any other message is for the agent, and the
//! approval stays.

use std::num::NonZeroUsize;

use a2a::{Message, PartContent};
use antiphon_core::port::{ApprovalQuery, ApprovalSelector};
use antiphon_core::{Approval, ApprovalId, Decision, TaskId};
use antiphon_interface_transport::{AppState, Caller};
use antiphon_runtime::Orchestrator;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::A2aError;

/// Pending approvals that are looked at, at most.
const LISTED_MAX: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// A decision in a message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalDecision {
    id: ApprovalId,
    decision: Decision,
    comment: Option<String>,
}

/// The decision that a message consists of, if it is one.
pub(crate) fn decision(message: &Message) -> Result<Option<ApprovalDecision>, A2aError> {
    let [part] = message.parts.as_slice() else { return Ok(None) };
    let PartContent::Data(Value::Object(data)) = &part.content else { return Ok(None) };
    let Some(approval) = data.get("approval") else { return Ok(None) };
    let wrong = |error| A2aError::param("message.parts[0].data.approval", error);
    ApprovalDecision::deserialize(approval).map(Some).map_err(wrong)
}

/// Decides an approval of a task or of a descendant.
pub(crate) async fn decide(
    state: &AppState,
    caller: &Caller,
    root: &TaskId,
    decision: ApprovalDecision,
) -> Result<(), A2aError> {
    let Some(by) = caller.decider("a2a") else {
        let message = "only the owner and a person's key of level `admin` may decide an approval";
        return Err(antiphon_project::forbidden(message).into());
    };
    if decision.decision == Decision::Expire {
        return Err(A2aError::param("decision", "only time expires an approval"));
    }
    let none = || A2aError::param("message.parts[0].data.approval.id", "there is no such approval");
    let found =
        state.deps.orchestrator.approvals(ApprovalSelector::One(decision.id.clone())).await?;
    let approval = found.into_iter().next().ok_or_else(none)?;
    if state.summary(&approval.task_id).await?.root != *root {
        return Err(none());
    }
    let ApprovalDecision { id, decision, comment } = decision;
    Ok(state.deps.orchestrator.decide(&id, decision, &by, comment).await?)
}

/// The approval that a root task or a descendant waits for now.
pub(crate) async fn pending(
    orchestrator: &Orchestrator,
    root: &TaskId,
) -> Result<Option<Approval>, A2aError> {
    let which = ApprovalSelector::Pending;
    let query = ApprovalQuery { which, after: None, limit: LISTED_MAX };
    for approval in orchestrator.approvals(query).await? {
        let is_below = approval.task_id == *root
            || orchestrator.task_alone(&approval.task_id).await?.created.root.as_ref()
                == Some(root);
        if is_below {
            return Ok(Some(approval));
        }
    }
    Ok(None)
}

/// The data of the status message.
pub(crate) fn data(approval: &Approval) -> Value {
    json!({ "approval": {
        "id": approval.approval_id, "toolName": approval.tool_name, "arguments": approval.arguments,
        "reason": approval.reason, "decisions": ["allow_once", "allow_task", "allow_always", "deny"],
    }})
}
