//! Watches the task of a request: yields its text and thinking as they are generated, and how it ends.
//!
//! Text comes from live deltas; the journal has the final messages. Text that was missed is taken from the
//! journal: a watcher that falls behind yields whole messages from then on, and loses nothing.

use std::pin::Pin;

use antiphon_core::{Approval, Position, Seq, TaskId, TaskSummary, WaitingFor};
use antiphon_runtime::{ApprovalRequests, Orchestrator, OrchestratorError, TaskWatch};

use super::answer_error::AnswerError;
use super::answer_part::AnswerPart;
use super::answer_state::AnswerState;
use crate::stream::live_task::{LiveItem, LiveTask};
use crate::stream::needed_approval::needed_approval;

type Waiting = Pin<Box<dyn Future<Output = Result<TaskSummary, OrchestratorError>> + Send>>;

/// An approval that the task or a descendant needs, and the last event of the task when that was found.
type Asking = Pin<Box<dyn Future<Output = Result<(Approval, Seq), OrchestratorError>> + Send>>;

/// Watches the task of a request.
pub struct AnswerWatcher {
    orchestrator: Orchestrator,
    task_id: TaskId,
    live: LiveTask,
    /// Ready when the task ends or is suspended. It is made again when the task goes on.
    waiting: Option<Waiting>,
    /// Whether `waiting` has been ready.
    is_suspended: bool,
    asking: Asking,
    /// The task needs an approval since this journal event.
    needs_approval: Option<(Seq, AnswerError)>,
    /// Whether `conclude` was called since the last journal event.
    concluded: bool,
    answer: AnswerState,
}

impl AnswerWatcher {
    /// `watch` starts at the beginning of the task. It is empty for a task that existed before.
    pub fn new(orchestrator: &Orchestrator, task_id: TaskId, watch: TaskWatch) -> Self {
        let TaskWatch { follower, deltas, approvals } = watch;
        let follows_deltas = deltas.is_some();
        let from_journal = || orchestrator.follow(Some(task_id.clone()), Position(0));
        Self {
            live: LiveTask::new(follower.unwrap_or_else(from_journal), deltas),
            asking: Box::pin(asking(orchestrator.clone(), task_id.clone(), approvals)),
            orchestrator: orchestrator.clone(),
            task_id,
            waiting: None,
            is_suspended: false,
            needs_approval: None,
            concluded: false,
            answer: AnswerState::new(follows_deltas),
        }
    }

    /// The next part. Cancel safe: a part that was not returned is returned by the next call.
    pub async fn next(&mut self) -> Result<AnswerPart, AnswerError> {
        loop {
            if let Some(part) = self.answer.ready.pop_front() {
                return Ok(part);
            }
            if let Some(end) = self.answer.end.take() {
                return Ok(AnswerPart::End(end));
            }
            if !self.concluded && self.answer.waits_for_client() {
                self.conclude().await?;
            }
            if let Some(part) = self.ready() {
                return Ok(part);
            }
            let waiting = self.waiting.get_or_insert_with(|| {
                let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
                Box::pin(async move { orchestrator.rest(&task_id).await })
            });
            tokio::select! {
                biased;
                item = self.live.next() => match item {
                    Ok(LiveItem::Event(event)) => {
                        self.concluded = false;
                        if std::mem::take(&mut self.is_suspended) {
                            self.waiting = None;
                        }
                        self.answer.read(*event)?;
                    }
                    // It is taken above, when the journal has reached it.
                    Ok(LiveItem::Delta) => {}
                    Ok(LiveItem::DeltasMissed) => self.answer.follows_deltas = false,
                    Err(error) => {
                        return Err(AnswerError::native(OrchestratorError::from(error)).await);
                    }
                },
                asked = &mut self.asking => {
                    self.asking = Box::pin(std::future::pending());
                    match asked {
                        Ok((approval, seq)) => {
                            let error = AnswerError::needs_approval(&self.task_id, &approval);
                            self.needs_approval = Some((seq, error));
                        }
                        Err(error) => return Err(AnswerError::native(error).await),
                    }
                }
                stopped = waiting => match stopped {
                    // The client does not wait until the spend limit resets.
                    Ok(task) if task.waiting_for == Some(WaitingFor::Budget) => {
                        let payer = task.payer;
                        let spent = self.orchestrator.check_budget(payer.as_deref(), None).await;
                        self.rest();
                        if let Err(error) = spent {
                            return Err(AnswerError::of(error).await);
                        }
                    }
                    // The task is suspended, or the journal is about to record its end.
                    Ok(_) => self.rest(),
                    Err(OrchestratorError::Stopping) => return Err(AnswerError::closing()),
                    Err(error) => return Err(AnswerError::native(error).await),
                },
            }
        }
    }

    /// A part that needs no more reading.
    fn ready(&mut self) -> Option<AnswerPart> {
        if let Some(away) = self.answer.away.take() {
            return Some(AnswerPart::Away(away));
        }
        let reached = |wait: &mut (Seq, AnswerError)| wait.0 <= self.answer.seq;
        if let Some((_, error)) = self.needs_approval.take_if(reached) {
            return Some(AnswerPart::Approval(error));
        }
        let due = self.live.take_due(self.answer.turn, self.answer.seq);
        due.and_then(|delta| self.answer.add_delta(delta))
    }

    /// The task is suspended: nothing more is asked until its next event.
    fn rest(&mut self) {
        self.waiting = Some(Box::pin(std::future::pending()));
        self.is_suspended = true;
    }

    /// Ends the task with the tool calls for the client.
    async fn conclude(&mut self) -> Result<(), AnswerError> {
        match self.orchestrator.conclude(&self.task_id).await {
            // The journal has the remaining work, or the end.
            Ok(_) | Err(OrchestratorError::Ended { .. }) => self.concluded = true,
            Err(error) => return Err(AnswerError::native(error).await),
        }
        Ok(())
    }
}

/// The approval that the task needs, and the last event of the task when that was found.
async fn asking(
    orchestrator: Orchestrator,
    task_id: TaskId,
    requests: Option<ApprovalRequests>,
) -> Result<(Approval, Seq), OrchestratorError> {
    let approval = needed_approval(&orchestrator, &task_id, requests).await?;
    let seq = orchestrator.task_alone(&task_id).await?.seq;
    Ok((approval, seq))
}
