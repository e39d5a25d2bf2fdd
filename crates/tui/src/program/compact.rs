//! Shortening the conversation: the model writes a summary, which later tasks read in its place.

use antiphon_core::{StatusChanged, TaskId, TaskStatus};
use antiphon_project::error::ProjectError;

use super::Program;
use super::new_task::TaskWork;

impl Program<'_, '_> {
    /// Has the model replace the conversation by a summary.
    pub(super) async fn compact(&mut self) -> Result<(), ProjectError> {
        if self.open_task().is_some() {
            self.note(
                "A task is open: its conversation is compacted by itself when it fills the context window. \
                 /compact is for when it has ended",
            );
            return Ok(());
        }
        if self.conversation.session.is_none() {
            self.note("there is no conversation to compact yet");
            return Ok(());
        }
        match self.start(String::new(), TaskWork::Compaction).await {
            Ok(()) => self.compacting = self.open_task(),
            Err(error) => self.error(&error.to_string()),
        }
        Ok(())
    }

    /// Whether the model writes a summary of the conversation now.
    pub(super) fn is_compacting(&self) -> bool {
        self.is_working && self.compacting.is_some() && self.compacting == self.open_task()
    }

    /// The task has ended: if it was there to shorten the conversation, says what it did not.
    pub(super) fn compaction_ended(&mut self, task_id: &TaskId, change: &StatusChanged) {
        if self.compacting.take_if(|it| *it == *task_id).is_none() {
            return;
        }
        let summary = change.detail.as_ref().and_then(|detail| detail.as_str());
        if change.status == TaskStatus::Completed {
            self.note(match summary {
                Some("") | None => "  There is nothing to compact",
                Some(_) => "  The next prompt goes on from a summary: Ctrl-T shows it",
            });
        }
    }
}
