//! Requests whose time is over. The agent that has one answers it as failed; the agent that sent one stops waiting.
//! An answer that was recorded at the last moment counts.

use std::sync::Arc;

use antiphon_core::port::{Append, Expected, JournalError};
use antiphon_core::{EventBody, InteractionId, Replied, TaskId};

use crate::inbox::requests::deliver_reply;
use crate::orchestrator_error::OrchestratorError;
use crate::services::Services;
use crate::task::schedule::supervise;
use crate::task::step::TaskRun;

/// Records replies to overdue requests, also while the task is in the middle of a step.
pub(crate) async fn answer_overdue(
    services: &Arc<Services>,
    task_id: &TaskId,
    request: InteractionId,
) -> Result<(), OrchestratorError> {
    // Most requests are answered in time: then the task is not loaded.
    if services.deps.journal.reply(request).await?.is_some() {
        return Ok(());
    }
    loop {
        let state = services.reader.load_without_messages(task_id).await?;
        let now = services.deps.clock.now();
        let late = state.overdue_requests(&services.time).into_iter();
        let answers: Vec<Replied> = late.filter_map(|id| state.overdue_reply(id)).collect();
        if answers.is_empty() || state.status.is_terminal() {
            return Ok(());
        }
        let append = Append {
            task_id: task_id.clone(),
            expected: Expected::AtOrArrivals(state.seq),
            at: now,
            events: answers.iter().cloned().map(EventBody::from).collect(),
            key: None,
        };
        match services.append(append).await {
            Ok(_) => {
                for answer in &answers {
                    deliver_reply(services, &state.created.agent, answer).await?;
                }
                supervise::start(services, task_id);
                return Ok(());
            }
            Err(JournalError::Stale { .. }) => {}
            Err(JournalError::Ended { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

impl TaskRun {
    /// Closes requests that were not answered in time. An answer recorded at the last moment counts.
    pub(crate) async fn time_out_requests(
        &mut self,
        ids: Vec<InteractionId>,
    ) -> Result<(), OrchestratorError> {
        self.flush().await?;
        for id in ids {
            let Some(sent) = self.state.outbound_requests.get(&id).cloned() else { continue };
            let late = || self.failed_reply(id, "timed_out", "no answer in time");
            let mut answer = self.services.deps.journal.reply(id).await?.unwrap_or_else(late);
            answer.reply_to = Some(self.state.task_id.clone());
            deliver_reply(&self.services, sent.to.as_str(), &answer).await?;
        }
        self.read_arrivals().await
    }

    /// Answers overdue requests as failed.
    pub(crate) async fn expire_requests(
        &mut self,
        ids: Vec<InteractionId>,
    ) -> Result<(), OrchestratorError> {
        for id in ids {
            if let Some(answer) = self.state.overdue_reply(id) {
                self.push(answer);
            }
        }
        self.flush().await.map(drop)
    }
}
