//! Approvals that a task waits for, as A2A shows and answers them.
//!
//! The status message of a task in `TASK_STATE_INPUT_REQUIRED` has a part `{"data": {"approval": {"id", "toolName",
//! "arguments", "reason"}}}`. A message to the task with a part `{"data": {"approval": {"id", "decision"}}}` decides,
//! if the caller may decide: the owner, or a person's key of level `admin`. The approval of a question has its `question`, and
//! `allow_once` takes an `answer`; a text of such a caller that is one of the choices, or an answer in words where the question
//! takes one, is the answer, too. Any other message is for the agent, and the approval stays.

use std::num::NonZeroUsize;

use a2a::{Message, PartContent};
use antiphon_core::port::{ApprovalQuery, ApprovalSelector, IdempotencyKey};
use antiphon_core::{Answer, Approval, ApprovalId, ApprovalReply, Decision, Question, TaskId};
use antiphon_interface_transport::{AppState, Caller};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::A2aError;

/// A decision in a message.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalDecision {
    id: ApprovalId,
    decision: Decision,
    comment: Option<String>,
    answer: Option<Answer>,
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
    let ApprovalDecision { id, decision, comment, answer } = decision;
    let reply = ApprovalReply { decision, comment, answer };
    Ok(state.deps.orchestrator.answer(&id, &reply, &by).await?)
}

/// The name of a caller who may decide.
fn decider(caller: &Caller) -> Option<String> {
    match caller {
        Caller::Owner => Some("a2a".to_owned()),
        Caller::Key(key) if caller.principal().is_admin && caller.agent().is_none() => {
            Some(format!("a2a, key {} ({})", key.id, key.name))
        }
        Caller::Key(_) => None,
    }
}

/// Answers the question that a task waits with, if the message is an answer to it and the caller may answer. A message that
/// was sent before, with the same key, is none.
pub(crate) async fn answer_in_words(
    state: &AppState,
    caller: &Caller,
    root: &TaskId,
    message: &Message,
    key: &IdempotencyKey,
) -> Result<bool, A2aError> {
    let (Some(by), [part]) = (decider(caller), message.parts.as_slice()) else { return Ok(false) };
    let PartContent::Text(text) = &part.content else { return Ok(false) };
    let orchestrator = &state.deps.orchestrator;
    if orchestrator.was_message_sent(root, key).await? {
        return Ok(false);
    }
    let Some(approval) = pending(orchestrator, root).await? else { return Ok(false) };
    let Some(Question::Choice(question)) = &approval.question else { return Ok(false) };
    let Some(answer) = question.read_answer(text.trim()) else { return Ok(false) };
    let reply = ApprovalReply::answering(answer);
    match orchestrator.answer_with_message(&approval.approval_id, &reply, &by, root, key).await {
        Ok(()) => Ok(true),
        // Another caller was first: the message is for the agent.
        Err(OrchestratorError::AlreadyDecided { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The oldest approval that a root task or a descendant waits for now.
pub(crate) async fn pending(
    orchestrator: &Orchestrator,
    root: &TaskId,
) -> Result<Option<Approval>, A2aError> {
    let which = ApprovalSelector::PendingIn(root.clone());
    let query = ApprovalQuery { which, after: None, limit: NonZeroUsize::MIN };
    Ok(orchestrator.approvals(query).await?.into_iter().next())
}

/// The data of the status message.
pub(crate) fn data(approval: &Approval) -> Value {
    let decisions: &[&str] = match approval.question {
        None => &["allow_once", "allow_task", "allow_always", "deny"],
        Some(_) => &["allow_once", "deny"],
    };
    let mut data = json!({
        "id": approval.approval_id, "toolName": approval.tool_name, "arguments": approval.arguments,
        "reason": approval.reason, "decisions": decisions,
    });
    if let Some(question) = &approval.question {
        data["question"] = json!(question);
    }
    json!({ "approval": data })
}
