//! Approvals as questions to the person at the client (elicitation). Everything in a question that a model wrote is
//! escaped, and the whole call is shown. Only an answer in the form that was asked for decides. There is no tool that
//! decides: a model cannot answer for its person.

use std::num::NonZeroUsize;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector};
use antiphon_core::{Approval, ApprovalReply, Decision, Question, TaskId};
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::{
    Colors, Extent, answers_text, call_lines, question_lines, rule_text, typed_reply,
};
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequests,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Columns of the lines of a question.
const COLUMNS: usize = 100;

/// Longest text of an answer, in bytes.
const COMMENT_BYTES_MAX: usize = 4096;

/// What a person answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Decided(ApprovalReply),
    /// The person dismissed the question: the approval stays pending.
    Dismissed,
}

/// The oldest approval that a root task or a descendant waits for now.
pub(crate) async fn pending(
    reader: &Orchestrator,
    root: &TaskId,
) -> Result<Option<Approval>, Failure> {
    let which = ApprovalSelector::PendingIn(root.clone());
    let query = ApprovalQuery { which, after: None, limit: NonZeroUsize::MIN };
    Ok(reader.approvals(query).await?.into_iter().next())
}

/// Whether a client shows forms to its person.
pub(crate) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    // Without modes a client of the older generation shows forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// The question about an approval.
pub(crate) fn question(approval: &Approval) -> Result<ElicitRequestParams, Failure> {
    let params = approval.question.as_ref().map_or_else(|| call_form(approval), question_form);
    serde_json::from_value(params).map_err(|error| {
        Failure::new(antiphon_core::ErrorCode::InternalError, format!("no question: {error}"))
    })
}

/// A question of the agent, or its plan: the answer is a text.
fn question_form(question: &Question) -> Value {
    json!({
        "mode": "form",
        "message": format!("{}\n{}", lines(question), answers_text(question)),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "answer": { "type": "string", "title": "Answer", "maxLength": COMMENT_BYTES_MAX },
            },
            "required": ["answer"],
        },
    })
}

fn lines(question: &Question) -> String {
    question_lines(question, Extent::Whole, Colors::Off, COLUMNS).join("\n")
}

/// A call that may run or not: the answer is one of the decisions.
fn call_form(approval: &Approval) -> Value {
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
    json!({
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
    })
}

/// The question as an input request of a result, under the id of the approval.
pub(crate) fn input_requests(approval: &Approval) -> Result<InputRequests, Failure> {
    let request = InputRequest::Elicitation(ElicitRequest::new(question(approval)?));
    Ok(InputRequests::from([(approval.approval_id.to_string(), request)]))
}

/// The answer to a question about `approval`. An answer that does not fit the question is refused and decides nothing.
pub(crate) fn answer(approval: &Approval, result: ElicitResult) -> Result<Answer, Failure> {
    let decided =
        |decision, comment| Answer::Decided(ApprovalReply { decision, comment, answer: None });
    if result.action == ElicitationAction::Decline {
        return Ok(decided(Decision::Deny, None));
    }
    if result.action != ElicitationAction::Accept {
        return Ok(Answer::Dismissed);
    }
    let content = result.content.unwrap_or(Value::Null);
    if approval.question.is_some() {
        let TypedAnswer { answer } = read_form(content)?;
        bounded("answer", &answer)?;
        return typed_reply(approval, &answer).map(Answer::Decided).map_err(Failure::invalid);
    }
    let CallDecision { decision, comment } = read_form(content)?;
    let is_offered = match decision {
        Decision::AllowOnce | Decision::Deny => true,
        Decision::AllowTask | Decision::AllowAlways => !approval.rule.0.is_empty(),
        Decision::Expire => false,
    };
    if !is_offered {
        return Err(Failure::invalid("the answer chooses a decision that was not offered"));
    }
    if let Some(comment) = &comment {
        bounded("comment", comment)?;
    }
    Ok(decided(decision, comment.filter(|comment| !comment.trim().is_empty())))
}

/// The content of [`call_form`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallDecision {
    decision: Decision,
    comment: Option<String>,
}

/// The content of [`question_form`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TypedAnswer {
    answer: String,
}

fn read_form<T: serde::de::DeserializeOwned>(content: Value) -> Result<T, Failure> {
    serde_json::from_value(content)
        .map_err(|error| Failure::invalid(format!("the answer does not fit the question: {error}")))
}

fn bounded(field: &str, text: &str) -> Result<(), Failure> {
    if text.len() > COMMENT_BYTES_MAX {
        return Err(Failure::invalid(format!("`{field}`: at most {COMMENT_BYTES_MAX} bytes")));
    }
    Ok(())
}

/// What a client that cannot ask tells its user.
pub(crate) fn note(task_id: &TaskId, approval: &Approval) -> String {
    let id = &approval.approval_id;
    if let Some(question) = &approval.question {
        let asked = lines(question);
        return format!(
            "The task {task_id} waits for the answer of a person:\n{asked}\nThe person answers with \
             `antiphon approvals answer {id}`. After that, call `task_wait` with the task for its result."
        );
    }
    format!(
        "The task {task_id} waits for a person to allow a call of {}: {}\n{}\nThe person decides with \
         `antiphon approvals allow {id}` or `antiphon approvals deny {id}`. After that, call `task_wait` with \
         the task for its result.",
        escaped(&approval.tool_name),
        escaped(&approval.reason),
        call_lines(approval).join("\n"),
    )
}
