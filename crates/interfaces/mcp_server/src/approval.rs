//! Approvals as questions to the person at the client (elicitation). Everything in a question that a model wrote is
//! escaped, and the whole call is shown. Only an answer in the form that was asked for decides. There is no tool that
//! decides: a model cannot answer for its person.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector};
use antiphon_core::{Approval, Decision, TaskId};
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::{call_lines, rule_text};
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequests,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Pending approvals that are looked at, at most.
const LISTED_MAX: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// Longest comment of an answer, in bytes.
const COMMENT_BYTES_MAX: usize = 4096;

/// What a person answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Decided(Decision, Option<String>),
    /// The person dismissed the question: the approval stays pending.
    Dismissed,
}

/// The approval that a root task or a descendant waits for now.
pub(crate) async fn pending(
    reader: &Orchestrator,
    root: &TaskId,
) -> Result<Option<Approval>, Failure> {
    let which = ApprovalSelector::Pending;
    let query = ApprovalQuery { which, after: None, limit: LISTED_MAX };
    for approval in reader.approvals(query).await? {
        let is_below = approval.task_id == *root
            || reader.created(&approval.task_id).await?.root.as_ref() == Some(root);
        if is_below {
            return Ok(Some(approval));
        }
    }
    Ok(None)
}

/// Whether a client shows forms to its person.
pub(crate) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // Without modes a client of the older generation shows forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The question about an approval.
pub(crate) fn question(approval: &Approval) -> Result<ElicitRequestParams, Failure> {
    let mut decisions = vec!["allow_once"];
    let rule = rule_text(approval);
    let mut text = format!(
        "The agent needs an approval of {}: {}\n{}",
        escaped(&approval.tool_name),
        escaped(&approval.reason),
        call_lines(approval).join("\n"),
    );
    if !approval.rule.0.is_empty() {
        decisions.extend(["allow_task", "allow_always"]);
        text.push_str("\n`allow_task` and `allow_always` allow every call that this rule covers: ");
        text.push_str(&rule);
    }
    decisions.push("deny");
    let params = json!({
        "mode": "form",
        "message": text,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": { "type": "string", "title": "Decision", "enum": decisions },
                "comment": { "type": "string", "title": "Comment", "maxLength": COMMENT_BYTES_MAX },
            },
            "required": ["decision"],
        },
    });
    serde_json::from_value(params).map_err(|error| {
        Failure::new(antiphon_core::ErrorCode::InternalError, format!("no question: {error}"))
    })
}

/// The question as an input request of a result, under the id of the approval.
pub(crate) fn input_requests(approval: &Approval) -> Result<InputRequests, Failure> {
    let request = InputRequest::Elicitation(ElicitRequest::new(question(approval)?));
    Ok(InputRequests::from([(approval.approval_id.to_string(), request)]))
}

/// The answer to a question about `approval`. An answer that does not fit the question is refused and decides nothing.
pub(crate) fn answer(approval: &Approval, result: ElicitResult) -> Result<Answer, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Content {
        decision: Decision,
        comment: Option<String>,
    }
    if result.action == ElicitationAction::Decline {
        return Ok(Answer::Decided(Decision::Deny, None));
    }
    if result.action != ElicitationAction::Accept {
        return Ok(Answer::Dismissed);
    }
    let content = result.content.unwrap_or(Value::Null);
    let Content { decision, comment } = serde_json::from_value(content).map_err(|error| {
        Failure::invalid(format!("the answer does not fit the question: {error}"))
    })?;
    let is_offered = match decision {
        Decision::AllowOnce | Decision::Deny => true,
        Decision::AllowTask | Decision::AllowAlways => !approval.rule.0.is_empty(),
        Decision::Expire => false,
    };
    if !is_offered {
        return Err(Failure::invalid("the answer chooses a decision that was not offered"));
    }
    if comment.as_ref().is_some_and(|comment| comment.len() > COMMENT_BYTES_MAX) {
        let message = format!("`comment`: at most {COMMENT_BYTES_MAX} bytes");
        return Err(Failure::invalid(message));
    }
    Ok(Answer::Decided(decision, comment.filter(|comment| !comment.trim().is_empty())))
}

/// What a client that cannot ask tells its user.
pub(crate) fn note(task_id: &TaskId, approval: &Approval) -> String {
    let id = &approval.approval_id;
    format!(
        "The task {task_id} waits for a person to allow a call of {}: {}\n{}\nThe person decides with \
         `antiphon approvals allow {id}` or `antiphon approvals deny {id}`. After that, call `task_wait` with \
         the task for its result.",
        escaped(&approval.tool_name),
        escaped(&approval.reason),
        call_lines(approval).join("\n"),
    )
}
