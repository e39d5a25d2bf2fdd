//! Faults of lists of approvals, agents and messages.

use antiphon_core::port::{
    AgentQuery, ApprovalQuery, ApprovalSelector, JournalError, JournalIndex, QueuedQuery,
};
use antiphon_core::{
    AgentStatus, Approval, ApprovalStatus, Event, EventBody, LiveAgent, Position, QueuedMessage,
    TaskId,
};

use super::{Fault, FaultyJournal, is_end};

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn list_approvals_wrongly(
        &self,
        mut query: ApprovalQuery,
    ) -> Result<Vec<Approval>, JournalError> {
        if self.fault == Fault::ListsOneMoreApproval {
            query.limit = query.limit.saturating_add(1);
        }
        if self.fault == Fault::IgnoresCursorOfApprovals {
            query.after = None;
        }
        if self.fault == Fault::ListsPendingApprovalsOfEveryTree
            && matches!(query.which, ApprovalSelector::PendingIn(_))
        {
            query.which = ApprovalSelector::Pending;
        }
        if self.fault == Fault::ListsApprovalsOfEveryPayer
            && matches!(query.which, ApprovalSelector::AllOf(_))
        {
            query.which = ApprovalSelector::All;
        }
        if self.fault == Fault::KeepsAllowedOnesPending && query.which == ApprovalSelector::Pending
        {
            let all = ApprovalQuery { which: ApprovalSelector::All, ..query };
            let mut found = self.inner.approvals(all).await?;
            let waits = [ApprovalStatus::Pending, ApprovalStatus::Allowed];
            found.retain(|approval| waits.contains(&approval.status));
            return Ok(found);
        }
        let mut found = self.inner.approvals(query).await?;
        if self.fault == Fault::ListsApprovalsByTask {
            found.sort_by(|a, b| a.task_id.cmp(&b.task_id));
        }
        for approval in &mut found {
            self.show_wrongly(approval).await;
        }
        Ok(found)
    }

    async fn show_wrongly(&self, approval: &mut Approval) {
        if self.fault == Fault::ForgetsWhenApprovalsExpire {
            approval.expires_at = None;
        }
        if self.fault == Fault::LetsApprovalsOutliveTheirTasks
            && approval.status == ApprovalStatus::Void
        {
            approval.status = ApprovalStatus::Pending;
        }
        for event in self.events(None).await {
            match event.body {
                EventBody::ApprovalDecided(decided)
                    if self.fault == Fault::LetsTheLastAnswerCount
                        && decided.approval_id == approval.approval_id =>
                {
                    approval.decide(&decided, event.at);
                }
                EventBody::ApprovalRequested(again)
                    if self.fault == Fault::AsksAgain
                        && again.approval_id == approval.approval_id =>
                {
                    approval.reason = again.reason;
                }
                _ => {}
            }
        }
    }

    pub(super) async fn list_agents_wrongly(
        &self,
        mut query: AgentQuery,
    ) -> Result<Vec<LiveAgent>, JournalError> {
        if self.fault == Fault::ListsOneMoreAgent {
            query.limit = query.limit.saturating_add(1);
        }
        if self.fault == Fault::IgnoresCursorOfAgents {
            query.before = None;
        }
        let is_first_page = query.before.is_none();
        let mut agents = self.inner.agents(query).await?;
        if self.fault == Fault::ListsTheOldestAgentFirst {
            agents.reverse();
        }
        if self.fault == Fault::LetsAgentsOutliveTheirTasks && agents.is_empty() && is_first_page {
            agents = self.agents_that_ever_were().await;
        }
        for agent in &mut agents {
            if self.fault == Fault::CountsEveryMove {
                agent.status.messages_processed = self.moves(agent).await;
            }
            if self.fault == Fault::CallsAgentsByTheirFirstNames {
                agent.agent = self.creation(&agent.task_id).await.agent;
            }
        }
        Ok(agents)
    }

    async fn agents_that_ever_were(&self) -> Vec<LiveAgent> {
        let moves = self.events(None).await.into_iter().filter_map(|event| match event.body {
            EventBody::StateChanged(change) => Some(LiveAgent {
                agent: "scribe".to_owned(),
                task_id: event.task_id,
                status: AgentStatus::started(change.agent_id, event.at),
            }),
            _ => None,
        });
        moves.collect()
    }

    async fn moves(&self, agent: &LiveAgent) -> u64 {
        let events = self.events(Some(&agent.task_id)).await;
        let moves = events.iter().filter(
            |e| matches!(&e.body, EventBody::StateChanged(c) if c.agent_id == agent.status.id),
        );
        moves.count() as u64
    }

    pub(super) async fn list_queued_wrongly(
        &self,
        mut query: QueuedQuery,
    ) -> Result<Vec<QueuedMessage>, JournalError> {
        if self.fault == Fault::ListsOneMoreMessage {
            query.limit = query.limit.saturating_add(1);
        }
        if self.fault == Fault::IgnoresCursorOfMessages {
            query.after = Position(0);
        }
        let (limit, after) = (query.limit, query.after);
        let mut queued = match self.fault {
            Fault::NeverTakesFromTheQueue
            | Fault::QueuesTwice
            | Fault::LetsMessagesOutliveTheirTasks
            | Fault::KeepsWhatIsReplaced
            | Fault::ReplacesInEveryTask
            | Fault::KeepsWhatIsAnswered => {
                let mut queued = self.fold_queue_wrongly().await;
                queued.retain(|queued| queued.position > after);
                queued
            }
            _ => self.inner.queued(query).await?,
        };
        if self.fault == Fault::ListsMessagesByTask {
            queued.sort_by(|a, b| a.task_id.cmp(&b.task_id));
        }
        queued.truncate(limit.get());
        Ok(queued)
    }

    async fn fold_queue_wrongly(&self) -> Vec<QueuedMessage> {
        let mut waiting: Vec<QueuedMessage> = Vec::new();
        for Event { task_id, position, at, body, .. } in self.events(None).await {
            let same = |queued: &QueuedMessage, id, task: &TaskId| {
                queued.message.id == id && queued.task_id == *task
            };
            let ends = is_end(&body);
            match body {
                EventBody::MessageQueued(new) => {
                    let everywhere = self.fault == Fault::ReplacesInEveryTask;
                    if let Some(old) = new.replaces
                        && self.fault != Fault::KeepsWhatIsReplaced
                    {
                        waiting.retain(|queued| {
                            queued.message.id != old || !(everywhere || queued.task_id == task_id)
                        });
                    }
                    let known = waiting.iter().any(|queued| same(queued, new.id, &task_id));
                    if !known || self.fault == Fault::QueuesTwice {
                        waiting.push(QueuedMessage { task_id, position, at, message: new });
                    }
                }
                EventBody::Replied(replied) if self.fault != Fault::KeepsWhatIsAnswered => {
                    waiting.retain(|queued| !same(queued, replied.in_reply_to, &task_id));
                }
                EventBody::MessageAppended(appended) => {
                    // Even this fault removes it where the same message is queued in another task.
                    let twice = waiting.len() > 1;
                    if let Some(id) = appended.queued
                        && (self.fault != Fault::NeverTakesFromTheQueue || twice)
                    {
                        waiting.retain(|queued| !same(queued, id, &task_id));
                    }
                }
                _ if ends && self.fault != Fault::LetsMessagesOutliveTheirTasks => {
                    waiting.retain(|queued| queued.task_id != task_id);
                }
                _ => {}
            }
        }
        waiting
    }
}
