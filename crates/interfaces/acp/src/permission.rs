//! Approvals as questions to the person at the editor. Everything in a question that a model wrote is escaped, and
//! the whole call is shown. Only a chosen option decides; an editor that cannot ask leaves the approval pending. The choices of a
//! question are options; one that is answered in words stays pending, because a permission has no words.

use antiphon_core::{Answer, Approval, ApprovalId, ApprovalReply, Decision, Question};
use antiphon_process::Participant;
use antiphon_view::display::escaped;
use antiphon_view::{call_lines, call_text, rule_text};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use crate::tool_call_update::text_content;
use crate::v2;
use crate::version::Version;
use crate::wire::{Editor, Unanswered};

const METHOD: &str = "session/request_permission";

const ONCE: &str = "allow_once";
const TASK: &str = "allow_task";
const ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

/// Before the number of a choice of a question, from 1.
const CHOICE: &str = "choice_";

/// Options of a question that can be asked: one that decides something, and the refusal.
const OPTIONS_MIN: usize = 2;

/// How a question ended.
pub(crate) enum Asked {
    /// The person decided, and the journal has it; or the question needs no answer any longer.
    Over,
    /// The editor cannot ask: the approval stays pending.
    Pending(ApprovalId),
}

/// Asks about an approval, and records the decision. `withdrawn` fires when no answer is needed any longer.
pub(crate) async fn ask(
    editor: &Editor,
    session_id: &str,
    participant: &Participant,
    approval: Approval,
    withdrawn: CancellationToken,
) -> Asked {
    let options = options(&approval);
    if options.len() < OPTIONS_MIN {
        return Asked::Pending(approval.approval_id);
    }
    let question = asked_in(editor, &question(session_id, &approval, options));
    // Once there is an answer, its request to the owner is not given up.
    let asked = tokio::select! {
        asked = editor.request::<RequestPermissionResponse>(METHOD, &question) => asked,
        () = withdrawn.cancelled() => return Asked::Over,
    };
    let outcome = match asked {
        Ok(response) => response.outcome,
        Err(Unanswered::Refused(reason)) => {
            tracing::warn!(%reason, "the editor did not ask about a call");
            return Asked::Pending(approval.approval_id);
        }
        Err(Unanswered::Gone) => return Asked::Over,
    };
    let RequestPermissionOutcome::Selected(selected) = outcome else { return Asked::Over };
    // No option that was offered: it allows nothing.
    let Some(reply) = reply(&approval, &selected.option_id.0) else {
        return Asked::Pending(approval.approval_id);
    };
    let decided = match participant.connection().await {
        Ok(connection) => connection.reply(&approval.approval_id, reply, "the editor").await,
        Err(error) => Err(error),
    };
    if let Err(error) = decided {
        // Another terminal may have decided.
        tracing::debug!(%error, "the decision was not recorded");
    }
    Asked::Over
}

/// A question in the shape of the version that the editor speaks.
fn asked_in(editor: &Editor, question: &RequestPermissionRequest) -> Value {
    match editor.version() {
        Version::V1 => json!(question),
        Version::V2 => v2::permission(question),
    }
}

/// What an option decides; `None` when it was not offered.
fn reply(approval: &Approval, option: &str) -> Option<ApprovalReply> {
    let decide = |decision| ApprovalReply { decision, comment: None, answer: None };
    let has_rule = approval.question.is_none() && !approval.rule.0.is_empty();
    match (option, &approval.question) {
        (ONCE, None | Some(Question::Plan(_))) => Some(decide(Decision::AllowOnce)),
        (TASK, _) if has_rule => Some(decide(Decision::AllowTask)),
        (ALWAYS, _) if has_rule => Some(decide(Decision::AllowAlways)),
        (DENY, _) => Some(decide(Decision::Deny)),
        (option, Some(Question::Choice(question))) => {
            let number: usize = option.strip_prefix(CHOICE)?.parse().ok()?;
            let label = question.choices.get(number.checked_sub(1)?)?.label.clone();
            Some(ApprovalReply::answering(Answer { choices: vec![label], text: None }))
        }
        (_, None | Some(Question::Plan(_))) => None,
    }
}

/// The options of a question. A question that is answered in words has none to take.
fn options(approval: &Approval) -> Vec<PermissionOption> {
    let option = |id: &str, name: String, kind| PermissionOption::new(id.to_owned(), name, kind);
    match &approval.question {
        Some(Question::Choice(question)) => {
            let choices = (1..).zip(&question.choices).map(|(number, choice)| {
                let (id, label) = (format!("{CHOICE}{number}"), escaped(&choice.label));
                option(&id, label.into_owned(), PermissionOptionKind::AllowOnce)
            });
            let none = option(DENY, "No answer".into(), PermissionOptionKind::RejectOnce);
            return choices.chain([none]).collect();
        }
        Some(Question::Plan(_)) => {
            return vec![
                option(ONCE, "Accept the plan".into(), PermissionOptionKind::AllowOnce),
                option(DENY, "Reject the plan".into(), PermissionOptionKind::RejectOnce),
            ];
        }
        None => {}
    }
    let mut options = vec![option(ONCE, "Allow once".into(), PermissionOptionKind::AllowOnce)];
    if !approval.rule.0.is_empty() {
        let rule = rule_text(approval);
        let (task, always) =
            (format!("Allow in this task: {rule}"), format!("Always allow: {rule}"));
        options.push(option(TASK, task, PermissionOptionKind::AllowAlways));
        options.push(option(ALWAYS, always, PermissionOptionKind::AllowAlways));
    }
    options.push(option(DENY, "Refuse".into(), PermissionOptionKind::RejectOnce));
    options
}

fn question(
    session_id: &str,
    approval: &Approval,
    options: Vec<PermissionOption>,
) -> RequestPermissionRequest {
    let call = call_lines(approval).join("\n");
    let fields = ToolCallUpdateFields::new()
        .title(call_text(approval))
        .status(ToolCallStatus::Pending)
        .content(vec![text_content(&call)]);
    let call = ToolCallUpdate::new(approval.tool_call_id.as_str().to_owned(), fields);
    RequestPermissionRequest::new(session_id.to_owned(), call, options)
}
