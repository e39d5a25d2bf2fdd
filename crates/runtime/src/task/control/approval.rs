//! Decisions about approvals, by a user or by expiry. The first one counts.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector, IdempotencyKey};
use antiphon_core::{
    Answer, Approval, ApprovalDecided, ApprovalId, ApprovalReply, ApprovalStatus, Decision,
    StatusChanged, TaskId, TaskStatus, WaitingFor,
};

use tokio::sync::watch;

use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::deadlines::Due;
use crate::task::schedule::supervise;
use crate::task::state::ApprovalQuestion;

/// When an approval that could not be expired is tried again.
const EXPIRE_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Learns of the approvals that tasks ask for from a moment on.
#[derive(Debug)]
pub struct ApprovalRequests(watch::Receiver<u64>);

impl ApprovalRequests {
    /// From now on.
    pub(crate) fn of(services: &Services) -> Self {
        Self(services.notifier.subscribe_approvals())
    }

    /// Returns when a task has asked.
    async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Answers an approval, once. The key is that of the message that is the answer, if there is one.
pub(crate) async fn decide(
    services: &Arc<Services>,
    approval_id: &ApprovalId,
    reply: &ApprovalReply,
    by: &str,
    key: Option<&IdempotencyKey>,
) -> Result<(), OrchestratorError> {
    let ApprovalReply { decision, comment, .. } = reply;
    let decision = *decision;
    loop {
        let approval = pending(services, approval_id).await?;
        let answer = checked_answer(&approval, reply)?;
        if decision == Decision::AllowAlways {
            let refuse = |reason| OrchestratorError::RuleNotSaved { reason };
            let created = services.reader.load_without_messages(&approval.task_id).await?.created;
            let gate = services.deps_of(&approval.task_id, &created).map_err(refuse)?;
            gate.gate.remember(&approval.rule).await.map_err(refuse)?;
        }
        let summary = services.reader.unfinished(&approval.task_id).await?;
        let decided = ApprovalDecided {
            approval_id: approval_id.clone(),
            decision,
            by: by.to_owned(),
            comment: comment.clone(),
            answer,
        };
        let mut events = vec![decided.into()];
        if summary.waiting_for == Some(WaitingFor::Approval)
            && !has_other_questions(services, &approval).await?
        {
            events.push(StatusChanged::new(TaskStatus::Running).into());
        }
        // Of two concurrent answers the journal takes one; the other finds the approval decided.
        let (shared, key) = (Arc::clone(services), key.cloned());
        // The task starts even if the caller goes away as soon as the journal has the decision.
        let decided = services.background.run_detached(async move {
            let is_written = shared.append_once_after(&summary, events, key).await?;
            if is_written {
                supervise::start(&shared, &summary.task_id);
            }
            Ok(is_written)
        });
        if decided.await? {
            return Ok(());
        }
    }
}

/// The answer that a reply gives to the question of an approval, checked.
fn checked_answer(
    approval: &Approval,
    reply: &ApprovalReply,
) -> Result<Option<Answer>, OrchestratorError> {
    let refuse = |reason: String| OrchestratorError::NotAnAnswer {
        approval_id: approval.approval_id.clone(),
        reason,
    };
    match (&approval.question, reply.decision, &reply.answer) {
        (_, Decision::Deny | Decision::Expire, Some(_)) => {
            Err(refuse("a refusal has no answer: use the comment".to_owned()))
        }
        (_, Decision::Deny | Decision::Expire, None) | (None, _, None) => Ok(None),
        (None, _, Some(_)) => {
            Err(refuse("it asks whether a call may run: allow or deny it".to_owned()))
        }
        (Some(_), Decision::AllowTask | Decision::AllowAlways, _) => {
            Err(refuse("a question is answered once: decide `allow_once`".to_owned()))
        }
        (Some(question), Decision::AllowOnce, answer) => {
            question.answered(answer.clone()).map_err(|error| refuse(error.to_string()))
        }
    }
}

/// The oldest approval that a task or a descendant waits for, as soon as there is one. Cancel safe.
pub(crate) async fn needed_by(
    services: &Services,
    task_id: &TaskId,
) -> Result<Approval, OrchestratorError> {
    let mut requests = ApprovalRequests::of(services);
    let root = services.reader.summary(task_id).await?.root;
    loop {
        // Subscribes before it looks, so that no request is missed.
        requests.0.borrow_and_update();
        let limit = if root == *task_id { NonZeroUsize::MIN } else { ApprovalQuery::MAX };
        let which = ApprovalSelector::PendingIn(root.clone());
        let query = ApprovalQuery { which, after: None, limit };
        for approval in services.deps.journal.approvals(query).await? {
            if root == *task_id || is_below(services, &approval.task_id, task_id).await? {
                return Ok(approval);
            }
        }
        requests.next().await;
    }
}

/// The same for a task that did not exist when `requests` began: nothing is read before a task asks. Cancel safe.
pub(crate) async fn needed_by_new(
    services: &Services,
    task_id: &TaskId,
    mut requests: ApprovalRequests,
) -> Result<Approval, OrchestratorError> {
    requests.next().await;
    needed_by(services, task_id).await
}

/// Whether `task_id` is `top` or a descendant of it.
async fn is_below(
    services: &Services,
    task_id: &TaskId,
    top: &TaskId,
) -> Result<bool, OrchestratorError> {
    let mut next = Some(task_id.clone());
    while let Some(task) = next {
        if task == *top {
            return Ok(true);
        }
        next = services.reader.summary(&task).await?.parent;
    }
    Ok(false)
}

async fn pending(
    services: &Services,
    approval_id: &ApprovalId,
) -> Result<Approval, OrchestratorError> {
    let which = ApprovalSelector::One(approval_id.clone());
    let query = ApprovalQuery { which, after: None, limit: NonZeroUsize::MIN };
    let found = services.deps.journal.approvals(query).await?.into_iter().next();
    let approval_id = approval_id.clone();
    match found {
        None => Err(OrchestratorError::NoApproval { approval_id }),
        Some(approval) if approval.status == ApprovalStatus::Pending => Ok(approval),
        Some(Approval { status, .. }) => {
            Err(OrchestratorError::AlreadyDecided { approval_id, status })
        }
    }
}

/// Whether the task waits for another approval as well.
async fn has_other_questions(
    services: &Services,
    approval: &Approval,
) -> Result<bool, OrchestratorError> {
    let state = services.reader.load_without_messages(&approval.task_id).await?;
    let other = |question: &ApprovalQuestion| {
        question.answer.is_none() && question.approval_id != approval.approval_id
    };
    Ok(state.approvals.values().any(other))
}

/// Expires an approval that was not answered in time.
pub(crate) async fn expire(services: &Arc<Services>, expired: ApprovalId) {
    let reply = ApprovalReply { decision: Decision::Expire, comment: None, answer: None };
    match decide(services, &expired, &reply, "the clock", None).await {
        // It was answered, or its task ended.
        Ok(())
        | Err(
            OrchestratorError::AlreadyDecided { .. }
            | OrchestratorError::NoApproval { .. }
            | OrchestratorError::Ended { .. },
        ) => {}
        Err(error) => {
            tracing::warn!(approval.id = %expired, %error, "could not expire");
            let later = services.time.monotonic() + EXPIRE_AGAIN_AFTER;
            services.deadlines.add(later, Due::Approval(expired));
        }
    }
}
