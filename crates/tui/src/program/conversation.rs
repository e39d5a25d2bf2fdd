//! What a prompt becomes: a new task of the conversation, a message to the task that works, or one that is sent when the
//! task has ended.

use std::io::Write as _;

use antiphon_api::RunTarget;
use antiphon_core::{
    HandlingMode, Message, SessionSummary, StatusChanged, TaskAccess, TaskId, TaskStatus,
};
use antiphon_process::TaskStream;
use antiphon_project::error::ProjectError;
use antiphon_project::prompt_with_images;
use antiphon_view::display::{Destination, escaped};
use antiphon_view::{FailedTask, FailureReader, failure_text};
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;
use uuid::Uuid;

use super::new_task::TaskWork;
use super::rest::Rest;
use super::{AtEnd, Next, Program};
use crate::composer::Vi;
use crate::document::{prompt_lines, text_of};
use crate::transcript::TaskTranscript;
use crate::wrap::wrap;
use crate::{highlight, markdown};

/// Messages of a continued conversation that are shown again.
const SHOWN_MESSAGES: usize = 20;

impl Program<'_, '_> {
    /// Sends a prompt: to the task that works, or as a new task.
    pub(super) async fn send(&mut self, prompt: String) -> Result<(), ProjectError> {
        highlight::prepare();
        if let Some(task_id) = self.addressee.take() {
            return self.steer_other(&task_id, prompt).await;
        }
        if let Some(task_id) = self.open_task() {
            if self.is_compacting() {
                self.queue.push_back(prompt);
                return Ok(());
            }
            return self.steer(&task_id, prompt).await;
        }
        self.show_prompt(&prompt);
        if let Err(error) = self.start(prompt, TaskWork::Prompt).await {
            self.error(&error.to_string());
        }
        Ok(())
    }

    /// Sends the prompt that the program was started with.
    pub(super) async fn begin_with(&mut self, prompt: String) -> Result<(), ProjectError> {
        if let Err(error) = self.history.add(&prompt) {
            self.note(&format!("the prompt is not in the history: {error}"));
        }
        self.history.reset();
        self.send(prompt).await
    }

    /// The watched task, if it has not ended.
    pub(super) fn open_task(&self) -> Option<TaskId> {
        let task = self.watched.as_ref().filter(|_| self.is_working || self.is_suspended)?;
        Some(task.task_id.clone())
    }

    /// Starts a task of the conversation, and shows it.
    pub(super) async fn start(
        &mut self,
        prompt: String,
        work: TaskWork,
    ) -> Result<(), ProjectError> {
        let typed = self.typed_part(&prompt).to_owned();
        let session = self.conversation.session.clone();
        let task = self.options.new_task(prompt, &typed, session, work)?;
        let key = Uuid::new_v4().to_string();
        let started = self.attachment.start(task, Some(&key)).await?;
        if work == TaskWork::Prompt {
            self.options.access = TaskAccess::Permitted;
        }
        for warning in &started.warnings {
            self.note(&escaped(warning));
        }
        self.watch(started.task_id.clone());
        self.started = Some(started.task_id.clone());
        let created = self.connection().reader().created(&started.task_id).await?;
        self.conversation.model = created.model;
        self.conversation.session = Some((created.session_id, started.task_id));
        Ok(())
    }

    /// Shows a task from now on.
    pub(super) fn watch(&mut self, task_id: TaskId) {
        let finished = self.watched.as_mut().map_or(Vec::new(), |task| {
            task.finish();
            task.take_finished()
        });
        self.finished.extend(finished);
        self.watched =
            Some(TaskTranscript::new(task_id, self.options.prices.clone(), self.width()));
        (self.is_working, self.is_suspended, self.question) = (true, false, None);
        self.rest = Rest::Unknown;
        self.is_dirty = true;
    }

    async fn steer(&mut self, task_id: &TaskId, prompt: String) -> Result<(), ProjectError> {
        let resumes = self.is_suspended;
        if !prompt.trim().is_empty() {
            match self.send_message(task_id, &prompt).await {
                Ok(()) => self.show_steering(&prompt, resumes),
                // The task has ended meanwhile: the next one gets the prompt, when that is shown.
                Err(_) if self.has_ended(task_id).await => {
                    self.queue.push_front(prompt);
                    return Ok(());
                }
                Err(error) => {
                    self.show_prompt(&prompt);
                    self.error(&error.to_string());
                }
            }
        }
        if resumes {
            self.resume(task_id).await;
        }
        Ok(())
    }

    /// The part of a prompt that the user typed: it may name images, and the file of a command may not.
    fn typed_part<'a>(&'a self, prompt: &'a str) -> &'a str {
        self.typed.as_deref().unwrap_or(prompt)
    }

    /// Sends a prompt with its images to a task.
    async fn send_message(&self, task_id: &TaskId, prompt: &str) -> Result<(), ProjectError> {
        let blocks = prompt_with_images(prompt, self.typed_part(prompt), &self.options.root)
            .map_err(ProjectError::InvalidInput)?;
        match blocks {
            Some(blocks) => {
                self.connection().send_blocks(task_id, blocks, HandlingMode::Steer).await
            }
            None => self.connection().send(task_id, prompt.to_owned(), HandlingMode::Steer).await,
        }
    }

    fn show_steering(&mut self, prompt: &str, resumes: bool) {
        self.show_prompt(prompt);
        if !resumes {
            self.note("  Queued: the agent reads it after the current step");
        }
    }

    async fn has_ended(&self, task_id: &TaskId) -> bool {
        let task = self.connection().reader().task_alone(task_id).await;
        task.is_ok_and(|task| task.status.is_terminal())
    }

    /// Sends a message to a task beside the conversation.
    async fn steer_other(&mut self, task_id: &TaskId, prompt: String) -> Result<(), ProjectError> {
        self.show_prompt(&prompt);
        match self.send_message(task_id, &prompt).await {
            Ok(()) => self.note(&format!(
                "  Queued: task {} reads it after its current step",
                task_id.short()
            )),
            Err(error) => self.error(&error.to_string()),
        }
        Ok(())
    }

    pub(super) async fn resume(&mut self, task_id: &TaskId) {
        match self.attachment.start(RunTarget::Resume(task_id.clone()), None).await {
            Ok(_) => (self.is_working, self.is_suspended) = (true, false),
            Err(error) => self.error(&error.to_string()),
        }
        self.is_dirty = true;
    }

    /// The watched task has ended: what it has spent, and the next prompt.
    pub(super) async fn task_ended(&mut self, change: &StatusChanged) -> Result<(), ProjectError> {
        let Some(task) = &mut self.watched else { return Ok(()) };
        task.finish();
        let spent = task.spent();
        let task_id = task.task_id.clone();
        self.compaction_ended(&task_id, change);
        match change.status {
            TaskStatus::Failed => {
                let text = self.failure(&task_id, change).await?;
                self.error(&escaped(&text));
            }
            TaskStatus::Canceled => self.note("  canceled"),
            TaskStatus::Pending
            | TaskStatus::Running
            | TaskStatus::InputRequired
            | TaskStatus::Completed => {}
        }
        self.note(&format!("  {spent}"));
        self.add_lines([Line::default()]);
        if self.queue.is_empty() {
            self.notify(match change.status {
                TaskStatus::Failed => "the task has failed",
                TaskStatus::Canceled => "the task was canceled",
                TaskStatus::Pending
                | TaskStatus::Running
                | TaskStatus::InputRequired
                | TaskStatus::Completed => "the task is done",
            })?;
        }
        if let Some(prompt) = self.queue.pop_front() {
            self.send(prompt).await?;
        }
        Ok(())
    }

    /// Why a task failed, and what to do.
    async fn failure(
        &self,
        task_id: &TaskId,
        change: &StatusChanged,
    ) -> Result<String, ProjectError> {
        let created = self.connection().reader().created(task_id).await?;
        let failed = FailedTask::of(change.detail.as_ref(), &created);
        Ok(failure_text(&failed, FailureReader::Conversation))
    }

    /// Interrupts the turn, or quits when nothing works and the key is pressed twice.
    pub(super) async fn interrupt_or_quit(&mut self) -> Result<Next, ProjectError> {
        if !self.composer.is_empty() {
            self.composer.set("");
            self.vi.iter_mut().for_each(Vi::reset);
            self.completions = None;
            self.is_dirty = true;
            return Ok(Next::Continue);
        }
        if self.is_working {
            self.interrupt().await;
            return Ok(Next::Continue);
        }
        if self.wants_to_quit.is_some_and(|at| at.elapsed().as_secs() < 2) {
            return Ok(Next::Quit);
        }
        self.wants_to_quit = Some(std::time::Instant::now());
        self.note("Press Ctrl-C again to quit");
        Ok(Next::Continue)
    }

    pub(super) async fn interrupt(&mut self) {
        let Some(task_id) = self.open_task().filter(|_| self.is_working) else { return };
        match self.connection().interrupt(&task_id).await {
            Ok(()) => {}
            // The end is about to be shown.
            Err(_) if self.has_ended(&task_id).await => self.is_working = false,
            Err(error) => self.error(&error.to_string()),
        }
    }

    /// The user quits: the own task is interrupted, and can be resumed.
    pub(super) async fn leave_task(&mut self) {
        if self.at_end == AtEnd::Detach {
            if let Some(task_id) = self.open_task() {
                self.attachment.detach(task_id);
            }
        } else if self.is_working {
            if self.attachment.is_owner() || self.started == self.open_task() {
                self.interrupt().await;
            } else {
                // Another process works on it, for another terminal or without one.
                self.at_end = AtEnd::Detach;
            }
        }
        if let Some(task_id) = self.open_task()
            && self.has_ended(&task_id).await
        {
            // Its end was not shown any more.
            (self.is_working, self.is_suspended) = (false, false);
        }
        (self.stream, self.rest, self.keys) = (TaskStream::Nothing, Rest::Known, None);
    }

    pub(super) fn say_goodbye(&self) {
        let goodbye = if self.at_end == AtEnd::Detach && self.open_task().is_some() {
            "The task goes on without this terminal. antiphon -c shows it again\n".to_owned()
        } else if let Some(task_id) = self.open_task() {
            format!("The task goes on with: antiphon run --resume {task_id}\n")
        } else if self.conversation.session.is_some() {
            "The conversation goes on with: antiphon -c\n".to_owned()
        } else {
            return;
        };
        // A terminal that is gone just now needs none.
        let _ = std::io::stderr().write_all(goodbye.as_bytes());
    }

    /// Continues the conversation with the newest task.
    pub(super) async fn continue_last(&mut self) -> Result<(), ProjectError> {
        match self.connection().find_session("last").await {
            Ok(session) => self.continue_session(session).await,
            Err(error) => {
                self.error(&error.to_string());
                Ok(())
            }
        }
    }

    pub(super) async fn continue_session(
        &mut self,
        summary: SessionSummary,
    ) -> Result<(), ProjectError> {
        let (session_id, last_task) = (summary.session_id.clone(), summary.last_task.clone());
        let status = summary.status;
        let session = self.connection().session(summary).await?;
        let first = session.messages.len().saturating_sub(SHOWN_MESSAGES);
        if first > 0 {
            self.note(&format!("… {first} earlier messages"));
        }
        for message in &session.messages[first..] {
            self.show_message(message);
        }
        let state = self.connection().reader().task_alone(&last_task).await?;
        self.conversation.model = state.created.model;
        self.conversation.name = self.session_names().of(&session_id);
        self.conversation.session = Some((session_id, last_task.clone()));
        (self.is_working, self.is_suspended, self.question) = (false, false, None);
        self.watched = None;
        if !status.is_terminal() {
            self.watch(last_task);
            if let Some(task) = &mut self.watched {
                task.set_todo(state.todo);
            }
            self.is_suspended = status == TaskStatus::InputRequired;
            self.is_working = !self.is_suspended;
            self.ask_next().await?;
        }
        Ok(())
    }

    pub(super) fn show_prompt(&mut self, prompt: &str) {
        let mut lines = prompt_lines(prompt, self.width());
        lines.push(Line::default());
        self.add_lines(lines);
    }

    fn show_message(&mut self, message: &Message) {
        match message {
            Message::User(user) => {
                self.show_prompt(&text_of(&user.content));
            }
            Message::Assistant(answer) => {
                let text = Destination::Terminal.text(&answer.text()).into_owned();
                let mut lines = markdown::lines(&text, self.width());
                for call in answer.tool_calls() {
                    let title = antiphon_view::tool_call_title(call);
                    let dim = Style::new().add_modifier(Modifier::DIM);
                    let line = Line::styled(format!("→ {title}"), dim);
                    lines.extend(wrap(&line, self.width(), 2));
                }
                lines.push(Line::default());
                self.add_lines(lines);
            }
            Message::ToolResult(_) => {}
        }
    }
}
