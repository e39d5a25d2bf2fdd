//! Approvals as questions to the person at the editor. Everything in a question that a model wrote is escaped, and
//! the whole call is shown. Only a chosen option decides; an editor that cannot ask leaves the approval pending.

use antiphon_core::{Approval, ApprovalId, Decision};
use antiphon_process::Participant;
use antiphon_view::{call_lines, call_text, rule_text};
use tokio_util::sync::CancellationToken;

use crate::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use crate::tool_call_update::text_content;
use crate::wire::{Editor, Unanswered};

const METHOD: &str = "session/request_permission";

const ONCE: &str = "allow_once";
const TASK: &str = "allow_task";
const ALWAYS: &str = "allow_always";
const DENY: &str = "deny";

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
    let question = question(session_id, &approval);
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
    let decision = match &*selected.option_id.0 {
        ONCE => Decision::AllowOnce,
        TASK if !approval.rule.0.is_empty() => Decision::AllowTask,
        ALWAYS if !approval.rule.0.is_empty() => Decision::AllowAlways,
        DENY => Decision::Deny,
        // No option that was offered: it allows nothing.
        _ => return Asked::Pending(approval.approval_id),
    };
    let decided = match participant.connection().await {
        Ok(connection) => {
            connection.decide(&approval.approval_id, decision, "the editor", None).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = decided {
        // Another terminal may have decided.
        tracing::debug!(%error, "the decision was not recorded");
    }
    Asked::Over
}

fn question(session_id: &str, approval: &Approval) -> RequestPermissionRequest {
    let option = |id: &str, name: String, kind| PermissionOption::new(id.to_owned(), name, kind);
    let mut options = vec![option(ONCE, "Allow once".into(), PermissionOptionKind::AllowOnce)];
    if !approval.rule.0.is_empty() {
        let rule = rule_text(approval);
        let (task, always) =
            (format!("Allow in this task: {rule}"), format!("Always allow: {rule}"));
        options.push(option(TASK, task, PermissionOptionKind::AllowAlways));
        options.push(option(ALWAYS, always, PermissionOptionKind::AllowAlways));
    }
    options.push(option(DENY, "Refuse".into(), PermissionOptionKind::RejectOnce));
    let call = call_lines(approval).join("\n");
    let fields = ToolCallUpdateFields::new()
        .title(call_text(approval))
        .status(ToolCallStatus::Pending)
        .content(vec![text_content(&call)]);
    let call = ToolCallUpdate::new(approval.tool_call_id.as_str().to_owned(), fields);
    RequestPermissionRequest::new(session_id.to_owned(), call, options)
}
