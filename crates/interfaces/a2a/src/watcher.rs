//! Follows a task and yields its updates as A2A sends them.
//!
//! Text of the model that is being written comes as chunks of the artifact `result`; a chunk that does not append begins
//! it anew. When the task completes, the whole artifact follows from the journal, so that a reader that missed chunks has
//! the same in the end. Everything else comes from the journal, in its order, for every watcher alike.

use std::collections::VecDeque;
use std::pin::Pin;

use a2a::{
    Part, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent,
};
use antiphon_core::{
    Event, EventBody, Message, OutageWait, Seq, StatusChanged, StreamEvent, TaskId, TaskSummary,
};
use antiphon_interface_transport::{LiveItem, LiveTask, needed_approval};
use antiphon_runtime::{
    ApprovalRequests, Delta, DeltaEvent, DeltaWatcher, Follower, Orchestrator, OrchestratorError,
};

use crate::error::A2aError;
use crate::task_view::{
    RESULT, agent_message, artifact, artifacts, ended_status, status, waiting_status,
};

/// When a watcher ends, beside the end of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// When the task waits for a person.
    Interrupted,
    /// Only then.
    Ended,
}

/// An update, and the event that it comes from.
#[derive(Debug)]
pub(crate) struct Update {
    pub(crate) seq: Seq,
    pub(crate) response: StreamResponse,
}

/// Where a watcher reads from.
pub(crate) struct Source {
    /// Begins at or before the state that the reader knows.
    pub(crate) follower: Follower,
    pub(crate) deltas: Option<DeltaWatcher>,
    /// The approvals that tasks ask for, from before the task began. `None` for a task that existed before.
    pub(crate) approvals: Option<ApprovalRequests>,
}

/// An approval that a descendant of the task needs.
type Asking = Pin<Box<dyn Future<Output = Result<TaskId, OrchestratorError>> + Send>>;

/// Follows a task.
pub(crate) struct Watcher {
    orchestrator: Orchestrator,
    task_id: TaskId,
    context_id: String,
    live: LiveTask,
    asking: Asking,
    until: Until,
    /// Updates that were not returned.
    ready: VecDeque<Update>,
    ended: bool,
    state: TaskState,
    seq: Seq,
    turn: u32,
    superseded_at: Seq,
    /// Whether the journal has the message of this turn.
    whole: bool,
    /// Bytes of this turn that were sent.
    sent: usize,
    is_text: bool,
}

impl Watcher {
    /// Follows a task from the state that `summary` and `state` show.
    pub(crate) async fn new(
        orchestrator: &Orchestrator,
        summary: &TaskSummary,
        state: TaskState,
        Source { follower, deltas, approvals }: Source,
        until: Until,
    ) -> Result<Self, A2aError> {
        let created = orchestrator.created(&summary.task_id).await?;
        let is_interrupted = state == TaskState::InputRequired;
        let mut watcher = Self {
            orchestrator: orchestrator.clone(),
            task_id: summary.task_id.clone(),
            context_id: summary.session_id.to_string(),
            live: LiveTask::new(follower, deltas),
            asking: Box::pin(std::future::pending()),
            until,
            ready: VecDeque::new(),
            ended: state.is_terminal(),
            state,
            seq: summary.seq,
            turn: summary.turns,
            superseded_at: Seq(0),
            whole: false,
            sent: 0,
            is_text: created.output_schema.is_none(),
        };
        // A reader knows the approval that the task waits for already.
        if !is_interrupted {
            watcher.ask(approvals);
        }
        Ok(watcher)
    }

    /// Yields no further update.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The next update; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Update>, A2aError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            if self.ended {
                return Ok(None);
            }
            if let Some(delta) = self.live.take_due(self.turn, self.seq) {
                self.add_delta(delta);
                continue;
            }
            tokio::select! {
                biased;
                item = self.live.next() => {
                    if let LiveItem::Event(event) = item.map_err(OrchestratorError::from)?
                        && event.seq > self.seq
                    {
                        self.read(*event).await?;
                    }
                }
                asked = &mut self.asking => {
                    self.asking = Box::pin(std::future::pending());
                    // The journal says the same of the task itself.
                    if asked? != self.task_id {
                        self.interrupt().await?;
                    }
                }
            }
        }
    }

    /// Waits for an approval that a descendant needs.
    fn ask(&mut self, requests: Option<ApprovalRequests>) {
        let (orchestrator, task_id) = (self.orchestrator.clone(), self.task_id.clone());
        self.asking = Box::pin(async move {
            Ok(needed_approval(&orchestrator, &task_id, requests).await?.task_id)
        });
    }

    async fn read(&mut self, event: Event) -> Result<(), A2aError> {
        self.seq = event.seq;
        if let EventBody::StatusChanged(change) = &event.body {
            if OutageWait::of(change).is_some_and(|wait| wait.superseded) {
                (self.superseded_at, self.sent) = (event.seq, 0);
            }
            return self.change(change, &event).await;
        }
        if let EventBody::UsageRecorded(recorded) = &event.body
            && recorded.purpose.is_none()
        {
            self.turn += 1;
            (self.whole, self.sent) = (false, 0);
        } else if let EventBody::MessageAppended(appended) = &event.body
            && !appended.superseded
            && let Message::Assistant(answer) = &*appended.message
        {
            self.whole = true;
            let text = answer.text();
            // The text of an answer without calls is the result.
            if answer.tool_calls().next().is_some() && !text.is_empty() {
                let said = agent_message(&self.task_id, event.seq.0, vec![Part::text(text)]);
                self.push_status(status(TaskState::Working, Some(said), event.at));
            }
        }
        Ok(())
    }

    async fn change(&mut self, change: &StatusChanged, event: &Event) -> Result<(), A2aError> {
        let status = ended_status(&self.task_id, change, event.at);
        if status.state == TaskState::InputRequired {
            return self.interrupt().await;
        }
        if status.state.is_terminal() {
            self.push_artifacts(change, event).await?;
            self.ended = true;
            self.push_status(status);
        } else if status.state == TaskState::Working && self.state != TaskState::Working {
            self.ask(None);
            self.push_status(status);
        }
        Ok(())
    }

    async fn push_artifacts(
        &mut self,
        change: &StatusChanged,
        event: &Event,
    ) -> Result<(), A2aError> {
        let state = self.orchestrator.task_alone(&self.task_id).await?;
        let shown = TaskSummary {
            status: change.status,
            calls: state.calls,
            ..TaskSummary::created(self.task_id.clone(), &state.created, event.at)
        };
        for artifact in artifacts(&self.orchestrator, &shown, change.detail.as_ref()).await? {
            self.push(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
                task_id: self.task_id.to_string(),
                context_id: self.context_id.clone(),
                artifact,
                append: Some(false),
                last_chunk: Some(true),
                metadata: None,
            }));
        }
        Ok(())
    }

    /// The task waits for a person.
    async fn interrupt(&mut self) -> Result<(), A2aError> {
        let tasks = antiphon_core::port::TaskQuery {
            which: antiphon_core::port::TaskSelector::One(self.task_id.clone()),
            limit: std::num::NonZeroUsize::MIN,
        };
        let Some(summary) = self.orchestrator.tasks(tasks).await?.into_iter().next() else {
            return Err(A2aError::no_task());
        };
        // It may have gone on meanwhile: its next event says so.
        if summary.status.is_terminal() {
            return Ok(());
        }
        let waits = waiting_status(&self.orchestrator, &summary).await?;
        self.push_status(waits);
        self.ended = self.until == Until::Interrupted;
        Ok(())
    }

    fn push_status(&mut self, status: TaskStatus) {
        self.state = status.state.clone();
        self.push(StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
            task_id: self.task_id.to_string(),
            context_id: self.context_id.clone(),
            status,
            metadata: None,
        }));
    }

    fn push(&mut self, response: StreamResponse) {
        self.ready.push_back(Update { seq: self.seq, response });
    }

    /// Sends new text. A delta after a gap is left out: the journal has the whole text.
    fn add_delta(&mut self, delta: Delta) {
        let DeltaEvent::Answer(StreamEvent::TextDelta { delta: text }) = delta.event else {
            return;
        };
        let is_current =
            delta.turn == self.turn && delta.after >= self.superseded_at && !self.whole;
        let known = self.sent.checked_sub(delta.text_at);
        let more = known.and_then(|known| text.get(known..)).filter(|more| !more.is_empty());
        let (Some(more), true) = (more, is_current && self.is_text) else { return };
        let append = self.sent > 0;
        self.sent += more.len();
        let artifact = artifact(RESULT, vec![Part::text(more)]);
        self.push(StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: self.task_id.to_string(),
            context_id: self.context_id.clone(),
            artifact,
            append: Some(append),
            last_chunk: Some(false),
            metadata: None,
        }));
    }
}
