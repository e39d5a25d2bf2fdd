//! Answers to questions about calls: of a person, or of the clock. The first one counts.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{ApprovalQuery, ApprovalSelector};
use antiphon_core::{
    Approval, ApprovalDecided, ApprovalId, ApprovalStatus, Decision, StatusChanged, TaskStatus,
    WaitingFor,
};

use crate::deadlines::Due;
use crate::inner::Inner;
use crate::orchestrator_error::OrchestratorError;
use crate::running;
use crate::state::Question;

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
            // Two answers at once: the journal takes one, and the other looks again.
            if self.append_behind(&summary, events).await? {
                running::start(self, &approval.task_id);
                return Ok(());
            }
        }
    }

    async fn pending(&self, approval_id: &ApprovalId) -> Result<Approval, OrchestratorError> {
        let which = ApprovalSelector::One(approval_id.clone());
        let query = ApprovalQuery { which, after: None, limit: NonZeroUsize::MIN };
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

    /// Whether its task waits for another answer too.
    async fn asks_more(&self, approval: &Approval) -> Result<bool, OrchestratorError> {
        let state = self.load(&approval.task_id).await?;
        let other = |question: &Question| {
            question.answer.is_none() && question.approval_id != approval.approval_id
        };
        Ok(state.asked.values().any(other))
    }

    /// Nobody answered in time.
    pub(crate) async fn expire(self: &Arc<Self>, expired: ApprovalId) {
        match self.decide(&expired, Decision::Expire, "the clock", None).await {
            // Somebody answered, or its task ended.
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
