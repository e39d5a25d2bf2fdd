//! What arrives from the journal: events and deltas of everything at work.

use antiphon_core::{Event, EventBody, TaskStatus, WaitingFor};
use antiphon_process::{NextOwner, TaskStream, TaskStreamEnd, TaskStreamItem};
use antiphon_project::error::ProjectError;

use super::rest::Rest;
use super::{Next, Program, unusable};

impl Program<'_, '_> {
    pub(super) async fn stream_item(
        &mut self,
        item: Result<TaskStreamItem, TaskStreamEnd>,
    ) -> Result<Next, ProjectError> {
        match item {
            Ok(TaskStreamItem::Event(event)) => self.event(&event).await,
            Ok(TaskStreamItem::Delta(delta)) => {
                if let Some(task) = &mut self.watched {
                    task.delta(&delta).map_err(unusable)?;
                    self.is_dirty = true;
                }
                Ok(Next::Continue)
            }
            Ok(TaskStreamItem::Missed(count)) => {
                if let Some(task) = &mut self.watched {
                    task.missed(count).map_err(unusable)?;
                }
                Ok(Next::Continue)
            }
            Err(TaskStreamEnd::OwnerLost(error)) => {
                tracing::debug!(%error, "looks for the owner of the journal");
                self.find_owner().await
            }
            Err(TaskStreamEnd::Unreadable(reason)) => Err(ProjectError::Unavailable(reason)),
        }
    }

    /// Goes on after the owner of the journal has ended: with the next one, or as the next one. No event is shown twice,
    /// and none is left out.
    pub(super) async fn find_owner(&mut self) -> Result<Next, ProjectError> {
        (self.stream, self.rest) = (TaskStream::Nothing, Rest::Known);
        let working = self.watched.as_ref().filter(|_| self.is_working);
        let next = match working.map(|task| task.task_id.clone()) {
            Some(task_id) => self.attachment.attach_again(&task_id).await?,
            None => {
                self.attachment.find_next_owner().await?;
                NextOwner::Found
            }
        };
        self.stream = match next {
            NextOwner::Ending => TaskStream::ending(),
            NextOwner::Found => {
                self.rest = Rest::Unknown;
                self.attachment.journal_stream(self.position)
            }
        };
        if next == NextOwner::Found
            && let Some(change) = self.attachment.take_owner_change()
        {
            self.note(&change.text());
        }
        Ok(Next::Continue)
    }

    async fn event(&mut self, event: &Event) -> Result<Next, ProjectError> {
        if event.position <= self.position {
            return Ok(Next::Continue);
        }
        self.position = event.position;
        self.board.apply(event);
        if self.board.wants_more() {
            let reader = self.connection().reader().clone();
            if let Err(error) = self.board.fill(&reader).await {
                // The next event tries again.
                tracing::debug!(%error, "a tree of tasks cannot be read");
            }
        }
        self.overlay_event(event);
        self.is_dirty = true;
        if matches!(event.body, EventBody::ApprovalRequested(_)) {
            self.notify("an agent needs an answer")?;
        }
        if !self.watched.as_ref().is_some_and(|task| task.concerns(event)) {
            if self.asked_task.as_ref() == Some(&event.task_id) {
                self.follow_questions(event).await?;
            }
            return Ok(Next::Continue);
        }
        let Some(task) = &mut self.watched else { return Ok(Next::Continue) };
        if matches!(self.rest, Rest::Known) {
            self.rest = Rest::Unknown;
        }
        let is_own = event.task_id == task.task_id;
        task.event(event).map_err(unusable)?;
        if is_own && let EventBody::StatusChanged(change) = &event.body {
            let is_resumable = change.status == TaskStatus::InputRequired
                && change.waiting_for == Some(WaitingFor::Resume);
            if is_resumable {
                task.suspend();
            }
            self.is_working = !change.status.is_terminal() && !is_resumable;
            self.is_suspended = is_resumable;
            if change.status.is_terminal() {
                self.task_ended(change).await?;
            }
        }
        self.follow_questions(event).await?;
        Ok(Next::Continue)
    }
}
