//! Asks the user at the terminal for approvals of the watched task and its descendants, one after
//! the other. With no user present, an approval stays pending in the journal.

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, Decision, Event, EventBody};
use antiphon_runtime::TaskState;
use antiphon_view::display::escaped;
use antiphon_view::text::cut;
use antiphon_view::{ApprovalQuestion, Note, Tone};

use super::{Next, WatchSession};
use crate::failure::Failure;
use crate::terminal;

impl WatchSession<'_, '_> {
    /// The task has ended or is suspended.
    pub(super) async fn on_suspended(&mut self, state: &TaskState) -> Result<Next, Failure> {
        // The event of its end stops the watching.
        if state.status.is_terminal() {
            return Ok(Next::Continue);
        }
        if self.watch.asking.is_some() {
            return Ok(Next::Continue);
        }
        if self.pending().await?.is_empty() || !self.asks_user() {
            return Ok(Next::Stop);
        }
        self.ask_next().await
    }

    /// Follows the approvals: an event may request one, decide one, or end the task that needs one.
    pub(super) async fn track_approvals(&mut self, event: &Event) -> Result<Next, Failure> {
        if let EventBody::ApprovalRequested(requested) = &event.body {
            if self.asks_user() {
                return if self.watch.asking.is_some() {
                    Ok(Next::Continue)
                } else {
                    self.ask_next().await
                };
            }
            if let Some(label) = self.descendants.label(&event.task_id)
                && !self.watch.screen.is_json()
            {
                let text =
                    format!("  [{label}] asks about {}", cut(&escaped(&requested.tool_name)));
                self.note(Note { text, tone: Tone::Plain });
            }
            return Ok(Next::Continue);
        }
        let decided = if let EventBody::ApprovalDecided(decided) = &event.body {
            Some(&decided.approval_id)
        } else {
            None
        };
        if decided.is_some() {
            self.watch_suspension();
        }
        let is_over = self.watch.asking.as_ref().is_some_and(|asking| {
            decided == Some(&asking.approval_id)
                || (event.body.ends_task() && asking.task_id == event.task_id)
        });
        if !is_over {
            return Ok(Next::Continue);
        }
        self.watch.asking = None;
        self.watch.screen.note("  no answer is needed any longer");
        self.ask_next().await
    }

    /// The pending approvals of the task and its descendants, the oldest first.
    pub(super) async fn pending(&self) -> Result<Vec<Approval>, Failure> {
        let reader = self.watch.attachment.connection().reader();
        let pending = reader.approvals(ApprovalSelector::Pending).await?;
        let ours = |approval: &Approval| {
            approval.task_id == *self.watch.task_id || self.descendants.contains(&approval.task_id)
        };
        Ok(pending.into_iter().filter(ours).collect())
    }

    /// The task an approval belongs to: `researcher (task 0199…)`.
    pub(super) fn task_name(&self, approval: &Approval) -> String {
        let id = &approval.task_id;
        match self.descendants.label(id) {
            Some(label) => format!("{label} (task {id})"),
            None => format!("task {id}"),
        }
    }

    /// Whether a user is present and is to be asked.
    fn asks_user(&self) -> bool {
        self.watch.asks && self.watch.keyboard.is_present()
    }

    /// Asks for the next pending approval, if there is one and the user is to be asked.
    async fn ask_next(&mut self) -> Result<Next, Failure> {
        if !self.asks_user() {
            return Ok(Next::Continue);
        }
        let mut pending = self.pending().await?.into_iter();
        self.watch.asking = pending.next();
        let Some(approval) = &self.watch.asking else {
            self.show_deferred_notes();
            return Ok(Next::Continue);
        };
        let is_descendant = approval.task_id != *self.watch.task_id;
        let task = is_descendant.then(|| self.task_name(approval));
        let question = ApprovalQuestion {
            approval,
            task: task.as_deref(),
            more: pending.len(),
            colors: terminal::stderr_colors(),
            width: terminal::width(),
        };
        self.watch.screen.styled_lines(&question.lines());
        Ok(Next::Continue)
    }

    /// The user typed a line: an answer to the question, or a message for the task.
    pub(super) async fn typed(&mut self, line: Option<String>) -> Result<Next, Failure> {
        match (line, self.watch.asking.take()) {
            // The input has ended: the approval stays pending.
            (None, Some(_)) => Ok(Next::Stop),
            (None, None) => Ok(Next::Continue),
            (Some(line), Some(approval)) if line.trim().starts_with('/') => {
                self.watch.asking = Some(approval);
                self.steer(line.trim()).await
            }
            (Some(line), Some(approval)) => self.answer(line.trim(), approval).await,
            (Some(line), None) => self.steer(line.trim()).await,
        }
    }

    async fn answer(&mut self, line: &str, approval: Approval) -> Result<Next, Failure> {
        let (decision, comment) = match line.to_ascii_lowercase().as_str() {
            "y" | "yes" => (Decision::AllowOnce, None),
            "t" | "task" => (Decision::AllowTask, None),
            "a" | "always" => (Decision::AllowAlways, None),
            "n" | "no" => (Decision::Deny, None),
            "" => {
                self.watch.asking = Some(approval);
                self.watch.screen.note("  y, t, a, or n");
                return Ok(Next::Continue);
            }
            _ => (Decision::Deny, Some(line.to_owned())),
        };
        let connection = self.watch.attachment.connection();
        match connection.decide(&approval.approval_id, decision, crate::DECIDER, comment).await {
            Ok(()) => self.ask_next().await,
            Err(failure) => {
                // Another terminal may have answered.
                if self.pending().await?.contains(&approval) {
                    self.watch.screen.note(&format!("  {failure}"));
                    self.watch.asking = Some(approval);
                    return Ok(Next::Continue);
                }
                self.ask_next().await
            }
        }
    }
}
