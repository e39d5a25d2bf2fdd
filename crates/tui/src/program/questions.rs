//! Approvals of the watched task and those below it, answered where the prompt is.

use std::time::Instant;

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, ApprovalReply, Decision, Event, EventBody};
use antiphon_project::error::ProjectError;
use antiphon_view::text::{columns, wrap};
use antiphon_view::{ApprovalQuestion, Colors};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::text::Line;

use super::{Asks, Program};
use crate::asked_question::{Answer, AskedQuestion};
use crate::sgr;

impl Program<'_, '_> {
    /// An event may ask a question, answer one, or end the task that asked.
    pub(super) async fn follow_questions(&mut self, event: &Event) -> Result<(), ProjectError> {
        let is_over = match (&event.body, &self.question) {
            (EventBody::ApprovalRequested(_), None) => true,
            (EventBody::ApprovalDecided(decided), Some(asked)) => {
                decided.approval_id == asked.approval.approval_id
            }
            (body, Some(asked)) => body.ends_task() && asked.approval.task_id == event.task_id,
            _ => false,
        };
        if is_over { self.ask_next().await } else { Ok(()) }
    }

    /// Shows the oldest question without an answer of the watched tree, or of the task that the user named.
    pub(super) async fn ask_next(&mut self) -> Result<(), ProjectError> {
        (self.question, self.warning) = (None, None);
        let watched = self.watched.as_ref();
        if watched.is_none() && self.asked_task.is_none() {
            return Ok(());
        }
        let pending = self.connection().approvals(ApprovalSelector::Pending).await?;
        let asks = self.options.asks;
        let ours = |approval: &Approval| {
            let task_id = &approval.task_id;
            self.asked_task.as_ref() == Some(task_id)
                || (asks == Asks::Here
                    && watched
                        .is_some_and(|task| task.task_id == *task_id || task.has_below(task_id)))
        };
        let mut pending = pending.into_iter().filter(ours);
        let Some(approval) = pending.next() else { return Ok(()) };
        let more = pending.count();
        let is_own = watched.is_some_and(|task| task.task_id == approval.task_id);
        let name = (!is_own).then(|| format!("task {}", approval.task_id));
        let question = ApprovalQuestion {
            approval: &approval,
            task: name.as_deref(),
            more,
            colors: Colors::On,
            width: self.width(),
        };
        let width = self.width();
        let lines: Vec<_> =
            question.lines().iter().flat_map(|line| question_line(line, width)).collect();
        if let Some(task) = &mut self.watched {
            // The answer that asks is complete.
            task.finish();
        }
        self.add_lines(lines);
        self.question = Some(AskedQuestion::new(approval));
        Ok(())
    }

    /// A second without a key has passed since the question appeared: keys answer it.
    pub(super) fn question_is_ready(&mut self) {
        if let Some(question) = &mut self.question {
            question.be_ready();
            self.is_dirty = true;
        }
    }

    /// A key while the prompt is empty. Returns false when it is a key like any other.
    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys do nothing here")]
    pub(super) async fn question_key(&mut self, key: KeyEvent) -> Result<bool, ProjectError> {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let Some(question) = self.question.as_mut().filter(|_| self.composer.is_empty()) else {
            return Ok(false);
        };
        let answer = match key.code {
            KeyCode::Char(c) if is_plain => question.key(c),
            // Esc does not interrupt here.
            _ if question.confirms() => {
                question.typed(Instant::now());
                self.is_dirty = true;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.answered(answer).await
    }

    /// A text that was sent while a question is on the screen. Returns false when it remains in the prompt.
    pub(super) async fn question_text(&mut self) -> Result<bool, ProjectError> {
        let Some(question) = self.question.as_mut().filter(|_| self.addressee.is_none()) else {
            return Ok(true);
        };
        let text = self.composer.whole_text();
        if (text.trim().is_empty() && !question.takes_default()) || text.starts_with(['/', '!']) {
            return Ok(true);
        }
        let answer = question.text(&text, Instant::now());
        if matches!(answer, Answer::Decided(_) | Answer::Asks) {
            self.composer.take();
        }
        self.answered(answer).await?;
        Ok(false)
    }

    async fn answered(&mut self, answer: Answer) -> Result<bool, ProjectError> {
        self.warning = None;
        match answer {
            Answer::Decided(reply) => self.decide(reply).await.map(|()| true),
            Answer::Asks => Ok(true),
            Answer::Edits => self.edit_plan().await.map(|()| true),
            Answer::Refused(why) => {
                self.warning = Some(why);
                Ok(false)
            }
            Answer::Unrelated => Ok(false),
        }
    }

    /// Something that does not answer was typed.
    pub(super) fn typed_beside_question(&mut self) {
        if let Some(question) = &mut self.question {
            question.typed(Instant::now());
            if self.composer.is_empty() {
                question.prompt_is_empty();
            }
        }
    }

    pub(super) async fn decide(&mut self, reply: ApprovalReply) -> Result<(), ProjectError> {
        let Some(AskedQuestion { approval, .. }) = self.question.take() else { return Ok(()) };
        let done = match reply.decision {
            Decision::AllowOnce if approval.question.is_some() => "  ✓ answered",
            Decision::AllowOnce => "  ✓ allowed once",
            Decision::AllowTask => "  ✓ allowed for this task",
            Decision::AllowAlways => "  ✓ allowed always",
            Decision::Deny | Decision::Expire => "  ✗ denied",
        };
        let decider = self.options.decider;
        let answered = self.connection().reply(&approval.approval_id, reply, decider).await;
        match answered {
            Ok(()) => self.note(done),
            // Another terminal may have answered.
            Err(error) => self.error(&error.to_string()),
        }
        self.ask_next().await
    }
}

/// A line of a question in lines that fit. The one that says what the keys do is as long as the rule that it names.
fn question_line(line: &str, width: usize) -> Vec<Line<'static>> {
    const INDENT: &str = "  ";
    match line.strip_prefix(INDENT) {
        Some(text) if columns(line) > width => {
            let parts = wrap(text, width.saturating_sub(INDENT.len()));
            parts.iter().map(|part| Line::raw(format!("{INDENT}{part}"))).collect()
        }
        Some(_) | None => vec![sgr::decode(line)],
    }
}
