//! Asks the user at the terminal for approvals of the watched task and its descendants, one after
//! the other. With no user present, an approval stays pending in the journal.

use std::time::{Duration, Instant};

use antiphon_core::{Approval, Decision, Event, EventBody, Question, WaitingFor};
use antiphon_runtime::TaskState;
use antiphon_tui::{Typed, TypedLine};
use antiphon_view::display::escaped;
use antiphon_view::text::cut;
use antiphon_view::{ApprovalQuestion, Note, Tone, settles, typed_reply};

use super::{Next, WatchSession};
use crate::failure::Failure;
use crate::terminal;

/// How long a task may take to go on after an answer.
const ANSWER_SETTLES: Duration = Duration::from_secs(2);

/// Pause before the next look at a task that was answered.
const ANSWER_PAUSE: Duration = Duration::from_millis(20);

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
        let is_pending = !self.task.pending_approvals(&self.descendants).await?.is_empty();
        let is_answered = self.answered_at.is_some_and(|at| at.elapsed() < ANSWER_SETTLES);
        if !is_pending && is_answered && state.waiting_for != Some(WaitingFor::Resume) {
            // The task rested before the user answered, and goes on soon.
            tokio::time::sleep(ANSWER_PAUSE).await;
            self.task.await_rest();
            return Ok(Next::Continue);
        }
        if !is_pending || !self.asks_user() {
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
        self.show_line()?;
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
            return self.show_line().map(|()| Next::Continue);
        };
        let is_descendant = approval.task_id != *self.task.task_id();
        let task = is_descendant.then(|| self.task_name(approval));
        let question = ApprovalQuestion {
            approval,
            task: task.as_deref(),
            more: pending.len(),
            colors: self.screen.colors(),
            width: terminal::width(),
        };
        let mut lines = question.lines();
        if self.screen.is_plain() {
            lines.extend(numbered_answers(approval));
        }
        self.asked_at = Instant::now();
        self.screen.styled_lines(&lines);
        self.notices.question();
        self.show_line()?;
        Ok(Next::Continue)
    }

    /// The user typed a line: an answer to the question, or a message for the task.
    pub(super) async fn typed(&mut self, typed: Typed) -> Result<Next, Failure> {
        let next = match typed {
            Typed::TooLong => {
                self.screen.note("the line is too long: what is typed now is not taken");
                Next::Continue
            }
            // The input has ended: the approval stays pending.
            Typed::End if self.asking.take().is_some() => Next::Stop,
            Typed::Changed | Typed::End => Next::Continue,
            Typed::Line(line) => {
                let next = self.line(line).await?;
                self.task.await_rest();
                next
            }
        };
        self.show_line()?;
        Ok(next)
    }

    async fn line(&mut self, line: TypedLine) -> Result<Next, Failure> {
        let text = line.text.trim().to_owned();
        let is_command = text.starts_with('/');
        if self.asking.is_some() && !is_command && line.began < self.asked_at {
            self.keyboard.take_back(line);
            self.screen.note(
                "  Nothing is sent: the question appeared while you typed. Ctrl-U removes the line; \
                 then answer",
            );
            return Ok(Next::Continue);
        }
        if !text.is_empty() {
            self.screen.sent(&text);
        }
        match self.asking.take() {
            Some(approval) if is_command => {
                self.asking = Some(approval);
                self.steer(&text).await
            }
            Some(approval) if self.screen.is_plain() => {
                let text = answer_of_number(&text, &approval).unwrap_or(&text);
                self.answer(text, approval).await
            }
            Some(approval) => self.answer(&text, approval).await,
            None => self.steer(&text).await,
        }
    }

    /// Shows what is typed, and what can be typed.
    fn show_line(&mut self) -> Result<(), Failure> {
        let hint = match self.asking.as_ref().map(|approval| &approval.question) {
            None => "",
            Some(None) => "y once, t for this task, a always, n no; or type why not",
            Some(Some(Question::Plan(_))) => {
                "y accepts the plan, n rejects it; or type what to change"
            }
            Some(Some(Question::Choice(_))) => {
                "a number, a label or your answer; - leaves it unanswered"
            }
        };
        self.screen.show_line(self.keyboard.input(), hint)
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
            Ok(()) => {
                self.answered_at = Some(Instant::now());
                self.ask_next().await
            }
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

/// The answers to a question about a call or a plan, with what stands for each.
fn answers(approval: &Approval) -> &'static [(&'static str, &'static str)] {
    match approval.question {
        None => &[
            ("y", "allow it once"),
            ("t", "allow it for this task"),
            ("a", "allow it always"),
            ("n", "deny it"),
        ],
        Some(Question::Plan(_)) => &[("y", "accept the plan"), ("n", "reject the plan")],
        // It has its own numbers.
        Some(Question::Choice(_)) => &[],
    }
}

fn numbered_answers(approval: &Approval) -> impl Iterator<Item = String> {
    let answers = answers(approval).iter().enumerate();
    answers.map(|(index, (_, text))| format!("  {} {text}", index + 1))
}

/// What a number stands for.
fn answer_of_number(text: &str, approval: &Approval) -> Option<&'static str> {
    let index = text.parse::<usize>().ok()?.checked_sub(1)?;
    answers(approval).get(index).map(|(answer, _)| *answer)
}
