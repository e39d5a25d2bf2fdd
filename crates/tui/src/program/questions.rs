//! Approvals of the watched task and those below it, answered where the prompt is.

use antiphon_core::port::ApprovalSelector;
use antiphon_core::{Approval, ApprovalReply, Decision, Event, EventBody};
use antiphon_project::error::ProjectError;
use antiphon_view::{ApprovalQuestion, Colors, typed_reply};

use super::Program;
use crate::sgr;

impl Program<'_, '_> {
    /// An event may ask a question, answer one, or end the task that asked.
    pub(super) async fn follow_questions(&mut self, event: &Event) -> Result<(), ProjectError> {
        let is_over = match (&event.body, &self.question) {
            (EventBody::ApprovalRequested(_), None) => true,
            (EventBody::ApprovalDecided(decided), Some(asked)) => {
                decided.approval_id == asked.approval_id
            }
            (body, Some(asked)) => body.ends_task() && asked.task_id == event.task_id,
            _ => false,
        };
        if is_over { self.ask_next().await } else { Ok(()) }
    }

    /// Shows the oldest question of the watched tree that has no answer.
    pub(super) async fn ask_next(&mut self) -> Result<(), ProjectError> {
        self.question = None;
        let Some(task) = &self.watched else { return Ok(()) };
        let pending = self.connection().approvals(ApprovalSelector::Pending).await?;
        let ours = |approval: &Approval| {
            approval.task_id == task.task_id || task.has_below(&approval.task_id)
        };
        let mut pending = pending.into_iter().filter(ours);
        let Some(approval) = pending.next() else { return Ok(()) };
        let more = pending.count();
        let is_below = approval.task_id != task.task_id;
        let name = is_below.then(|| format!("task {}", approval.task_id));
        let question = ApprovalQuestion {
            approval: &approval,
            task: name.as_deref(),
            more,
            colors: Colors::On,
            width: self.width(),
        };
        let lines: Vec<_> = question.lines().iter().map(|line| sgr::decode(line)).collect();
        if let Some(task) = &mut self.watched {
            // The answer that asks is complete.
            task.finish();
        }
        self.add_lines(lines);
        self.question = Some(approval);
        Ok(())
    }

    /// Answers the question with a line that the person typed. What is no answer leaves it open.
    pub(super) async fn reply_typed(&mut self, line: &str) -> Result<(), ProjectError> {
        let Some(approval) = &self.question else { return Ok(()) };
        match typed_reply(approval, line) {
            Ok(reply) => self.reply(reply).await,
            Err(possible) => {
                self.note(&format!("  {possible}"));
                Ok(())
            }
        }
    }

    /// Answers the question.
    pub(super) async fn reply(&mut self, reply: ApprovalReply) -> Result<(), ProjectError> {
        let Some(approval) = self.question.take() else { return Ok(()) };
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
