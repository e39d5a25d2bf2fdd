//! Asks the user at the terminal for approvals of the watched task and its descendants, one after
//! the other. With no user present, an approval stays pending in the journal.

use antiphon_core::{Approval, Decision, Event, EventBody};
use antiphon_runtime::TaskState;
use antiphon_view::display::escaped;
use antiphon_view::text::cut;
use antiphon_view::{ApprovalQuestion, Note, Tone, settles, typed_reply};

use super::{Next, WatchSession};
use crate::failure::Failure;
use crate::terminal;

impl WatchSession<'_, '_> {
    /// The task has ended or is suspended.
    pub(super) async fn on_rest(&mut self, state: &TaskState) -> Result<Next, Failure> {
        // The event of its end stops the watching.
        if state.status.is_terminal() {
            return Ok(Next::Continue);
        }
        if self.asking.is_some() {
            return Ok(Next::Continue);
        }
        if self.task.pending_approvals(&self.descendants).await?.is_empty() || !self.asks_user() {
            return Ok(Next::Stop);
        }
        self.ask_next().await
    }

    /// Follows the approvals: an event may request one, decide one, or end the task that needs one.
    pub(super) async fn track_approvals(&mut self, event: &Event) -> Result<Next, Failure> {
        if let EventBody::ApprovalRequested(requested) = &event.body {
            if self.asks_user() {
                return if self.asking.is_some() {
                    Ok(Next::Continue)
                } else {
                    self.ask_next().await
                };
            }
            if let Some(label) = self.descendants.label(&event.task_id)
                && !self.screen.is_json()
            {
                let text =
                    format!("  [{label}] asks about {}", cut(&escaped(&requested.tool_name)));
                self.note(Note { text, tone: Tone::Plain });
            }
            return Ok(Next::Continue);
        }
        if matches!(event.body, EventBody::ApprovalDecided(_)) {
            self.task.await_rest();
        }
        let is_over = self.asking.as_ref().is_some_and(|asking| settles(event, asking));
        if !is_over {
            return Ok(Next::Continue);
        }
        self.asking = None;
        self.screen.note(if let EventBody::ApprovalDecided(decided) = &event.body {
            match decided.decision {
                Decision::AllowOnce if decided.answer.is_some() => {
                    "  answered elsewhere, as in another terminal"
                }
                Decision::AllowOnce | Decision::AllowTask | Decision::AllowAlways => {
                    "  allowed elsewhere, as in another terminal"
                }
                Decision::Deny => "  denied elsewhere, as in another terminal",
                Decision::Expire => "  the time to decide is over",
            }
        } else {
            "  no answer is needed any longer: the task has ended"
        });
        self.ask_next().await
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
        self.asks && self.keyboard.is_present()
    }

    /// Asks for the next pending approval, if there is one and the user is to be asked.
    async fn ask_next(&mut self) -> Result<Next, Failure> {
        if !self.asks_user() {
            return Ok(Next::Continue);
        }
        let mut pending = self.task.pending_approvals(&self.descendants).await?.into_iter();
        self.asking = pending.next();
        let Some(approval) = &self.asking else {
            self.show_deferred_notes();
            return Ok(Next::Continue);
        };
        let is_descendant = approval.task_id != *self.task.task_id();
        let task = is_descendant.then(|| self.task_name(approval));
        let question = ApprovalQuestion {
            approval,
            task: task.as_deref(),
            more: pending.len(),
            colors: terminal::stderr_colors(),
            width: terminal::width(),
        };
        self.screen.styled_lines(&question.lines());
        Ok(Next::Continue)
    }

    /// The user typed a line: an answer to the question, or a message for the task.
    pub(super) async fn typed(&mut self, line: Option<String>) -> Result<Next, Failure> {
        match (line, self.asking.take()) {
            // The input has ended: the approval stays pending.
            (None, Some(_)) => Ok(Next::Stop),
            (None, None) => Ok(Next::Continue),
            (Some(line), Some(approval)) if line.trim().starts_with('/') => {
                self.asking = Some(approval);
                self.steer(line.trim()).await
            }
            (Some(line), Some(approval)) => self.answer(line.trim(), approval).await,
            (Some(line), None) => self.steer(line.trim()).await,
        }
    }

    async fn steer(&mut self, line: &str) -> Result<Next, Failure> {
        if let Some(note) = self.task.steer(line).await {
            self.screen.note(&note);
        }
        Ok(Next::Continue)
    }

    async fn answer(&mut self, line: &str, approval: Approval) -> Result<Next, Failure> {
        let reply = match typed_reply(&approval, line) {
            Ok(reply) => reply,
            Err(possible) => {
                self.asking = Some(approval);
                self.screen.note(&format!("  {}", escaped(&possible)));
                return Ok(Next::Continue);
            }
        };
        let connection = self.task.connection();
        match connection.reply(&approval.approval_id, reply, crate::DECIDER).await {
            Ok(()) => self.ask_next().await,
            Err(failure) => {
                // Another terminal may have answered.
                if self.task.pending_approvals(&self.descendants).await?.contains(&approval) {
                    self.screen.note(&format!("  {failure}"));
                    self.asking = Some(approval);
                    return Ok(Next::Continue);
                }
                self.ask_next().await
            }
        }
    }
}
