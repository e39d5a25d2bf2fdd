//! Decisions about approvals, by a user or by expiry. The first one counts.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector};
use antiphon_core::{
    Approval, ApprovalDecided, ApprovalId, ApprovalStatus, Decision, StatusChanged, TaskStatus,
    WaitingFor,
};

use crate::orchestrator_error::OrchestratorError;
use crate::services::Inner;
use crate::task::deadlines::Due;
use crate::task::run_slots;
use crate::task::state::Question;

impl Inner {
    /// Answers an approval, once.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        approval_id: &ApprovalId,
        decision: Decision,
        by: &str,
        comment: Option<String>,
    ) -> Result<(), OrchestratorError> {
        loop {
            let approval = self.pending(approval_id).await?;
            if decision == Decision::AllowAlways {
                let kept = self.world.gate.remember(&approval.rule).await;
                kept.map_err(|reason| OrchestratorError::NotRemembered { reason })?;
            }
            let summary = self.unfinished(&approval.task_id).await?;
            let decided = ApprovalDecided {
                approval_id: approval_id.clone(),
                decision,
                by: by.to_owned(),
                comment: comment.clone(),
            };
            let mut events = vec![decided.into()];
            if summary.waiting_for == Some(WaitingFor::Approval)
                && !self.asks_more(&approval).await?
            {
                events.push(StatusChanged::new(TaskStatus::Running).into());
            }
            // Of two concurrent answers the journal takes one; the other finds the approval decided.
            if self.append_behind(&summary, events).await? {
                run_slots::start(self, &approval.task_id);
                return Ok(());
            }
        }
    }

    async fn pending(&self, approval_id: &ApprovalId) -> Result<Approval, OrchestratorError> {
        let which = ApprovalSelector::One(approval_id.clone());
        let query = ApprovalQuery { which, limit: NonZeroUsize::MIN };
        let found = self.world.journal.approvals(query).await?.into_iter().next();
        let approval_id = approval_id.clone();
        match found {
            None => Err(OrchestratorError::NoApproval { approval_id }),
            Some(approval) if approval.status == ApprovalStatus::Pending => Ok(approval),
            Some(Approval { status, .. }) => {
                Err(OrchestratorError::Decided { approval_id, status })
            }
        }
    }

    /// Whether the task waits for another approval as well.
    async fn asks_more(&self, approval: &Approval) -> Result<bool, OrchestratorError> {
        let state = self.load(&approval.task_id).await?;
        let other = |question: &Question| {
            question.answer.is_none() && question.approval_id != approval.approval_id
        };
        Ok(state.asked.values().any(other))
    }

    /// Expires an approval that was not answered in time.
    pub(crate) async fn expire(self: &Arc<Self>, expired: ApprovalId) {
        match self.decide(&expired, Decision::Expire, "the clock", None).await {
            // It was answered, or its task ended.
            Ok(())
            | Err(
                OrchestratorError::Decided { .. }
                | OrchestratorError::NoApproval { .. }
                | OrchestratorError::Ended { .. },
            ) => {}
            Err(error) => {
                tracing::warn!(approval.id = %expired, %error, "could not expire");
                let later = self.world.clock.now() + chrono::TimeDelta::seconds(5);
                self.deadlines.add(later, Due::Approval(expired));
            }
        }
    }
}
