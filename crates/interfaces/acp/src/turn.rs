//! A prompt: its task is started or gets the message, and is watched until it has ended.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_api::{RunStarted, RunTarget, SendMessage};
use antiphon_client::StreamItem;
use antiphon_core::port::{ApprovalSelector, TaskQuery, TaskSelector};
use antiphon_core::{
    Approval, ApprovalId, Event, EventBody, HandlingMode, Message, RawJson, StatusChanged, TaskId,
    TaskStatus, TaskSummary, WaitingFor,
};
use antiphon_process::{Connection, FollowedTask};
use antiphon_project::error::ProjectError;
use antiphon_project::models::Route;
use antiphon_project::run_request::{RunRequest, RunSession};
use antiphon_project::task_process::TaskProcess;
use antiphon_view::display::escaped;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::permission::{self, Asked};
use crate::prompt_answer::PromptAnswer;
use crate::prompt_content::PromptContent;
use crate::schema::{ContentBlock, ContentChunk, Error, SessionUpdate, StopReason, TextContent};
use crate::session::{RunningTurn, Session};
use crate::turn_updates::TurnUpdates;
use crate::v2::SessionState;
use crate::wire::Editor;

/// A turn while its task runs.
struct Turn<'a> {
    editor: Arc<Editor>,
    answer: &'a mut PromptAnswer,
    session: Arc<Session>,
    task_id: TaskId,
    updates: TurnUpdates,
    questions: JoinSet<Asked>,
    /// Withdraws a question.
    asking: HashMap<ApprovalId, CancellationToken>,
}

/// Runs a prompt to its end.
pub(crate) async fn run(
    editor: Arc<Editor>,
    running: &RunningTurn,
    content: PromptContent,
    answer: &mut PromptAnswer,
) -> Result<StopReason, Error> {
    let session = Arc::clone(&running.session);
    let process = session.process().map_err(failed)?;
    let started = start(&session, &process, content).await.map_err(failed)?;
    answer.state(SessionState::Running).await;
    let mut feed = session.participant.follow(process, &started);
    let task_id = started.task_id.clone();
    let root = session.participant.project().root().to_owned();
    let updates = TurnUpdates::new(task_id.clone(), root);
    let (questions, asking) = (JoinSet::new(), HashMap::new());
    let mut turn = Turn { editor, answer, session, task_id, updates, questions, asking };
    for approval in turn.pending(&started.root).await {
        turn.ask(approval);
    }
    turn.watch(running, &mut feed).await
}

/// Starts the task of a prompt. The journal has the prompt when this returns.
async fn start(
    session: &Session,
    process: &TaskProcess,
    content: PromptContent,
) -> Result<RunStarted, ProjectError> {
    let connection = session.participant.connection().await?;
    let last = last_task(&connection, session).await?;
    let blocks = Value::Array(content.blocks);
    if let Some(last) = last.as_ref().filter(|last| !last.status.is_terminal()) {
        return continue_task(session, process, &connection, last, &blocks).await;
    }
    let choice = session.choice();
    let session_id = session.id.clone();
    let run_session = match last {
        Some(last) => RunSession::Stored { session_id, last_task: last.task_id },
        None => RunSession::New { session_id },
    };
    let request = RunRequest {
        prompt: content.text,
        blocks: Some(raw(&blocks)?),
        agent: choice.agent,
        model: choice.model,
        system: None,
        session: Some(run_session),
        limits: antiphon_core::TaskLimits::default(),
        output_schema: None,
        plan: false,
        compact: false,
        source: None,
        route: Route { process: Some(process.clone()), ..Route::default() },
    };
    let key = Uuid::new_v4().to_string();
    session.participant.start(process, RunTarget::New(raw(&request)?), Some(&key)).await
}

/// The last task of the session was cut off: it gets the prompt as a message, and goes on.
async fn continue_task(
    session: &Session,
    process: &TaskProcess,
    connection: &Connection,
    last: &TaskSummary,
    blocks: &Value,
) -> Result<RunStarted, ProjectError> {
    let Connection::Server(server, reader) = connection else {
        return Err(ProjectError::Unavailable("the journal has no owner: try again".to_owned()));
    };
    let after = reader.head().await?;
    let message = json!({ "content": blocks });
    let text = serde_json::value::to_raw_value(&message);
    let text = text.map_err(|error| ProjectError::Failed(error.to_string()))?;
    let message = SendMessage { text, mode: HandlingMode::Steer, from: None };
    let key = Uuid::new_v4().to_string();
    server.answer(server.client.send_message(&last.task_id, &message, Some(&key)).await)?;
    let target = match last.status {
        TaskStatus::InputRequired => RunTarget::Resume(last.task_id.clone()),
        TaskStatus::Pending
        | TaskStatus::Running
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Canceled => RunTarget::Attach(last.task_id.clone()),
    };
    let started = match session.participant.start(process, target, None).await {
        Ok(started) => started,
        // It waits for something else than to be resumed.
        Err(ProjectError::InvalidInput(_)) => {
            let target = RunTarget::Attach(last.task_id.clone());
            session.participant.start(process, target, None).await?
        }
        Err(error) => return Err(error),
    };
    Ok(RunStarted { after, ..started })
}

/// The newest task of a session, if the journal has one.
pub(crate) async fn last_task(
    connection: &Connection,
    session: &Session,
) -> Result<Option<TaskSummary>, ProjectError> {
    let which = TaskSelector::Session(session.id.clone());
    let query = TaskQuery { which, limit: NonZeroUsize::MIN };
    Ok(connection.reader().tasks(query).await?.into_iter().next())
}

impl Turn<'_> {
    async fn watch(
        &mut self,
        running: &RunningTurn,
        feed: &mut FollowedTask,
    ) -> Result<StopReason, Error> {
        let mut is_canceled = false;
        loop {
            tokio::select! {
                biased;
                () = running.canceled.cancelled(), if !is_canceled => {
                    is_canceled = true;
                    self.asking.values().for_each(CancellationToken::cancel);
                    let connection = self.session.participant.connection().await.map_err(failed)?;
                    // It may have ended just now: then its end follows.
                    if let Err(error) = connection.cancel(&self.task_id).await {
                        tracing::debug!(%error, "the task was not canceled");
                    }
                }
                Some(asked) = self.questions.join_next() => {
                    if let Ok(Asked::Pending(id)) = asked {
                        self.note_pending(&id).await;
                    }
                }
                item = feed.next() => match item.map_err(failed)? {
                    StreamItem::Delta(delta) => {
                        if let Some(update) = self.updates.delta(delta) {
                            self.send(update).await;
                        }
                    }
                    StreamItem::Event(event) => {
                        if let Some(end) = self.event(&event).await {
                            return end;
                        }
                    }
                },
            }
        }
    }

    async fn event(&mut self, event: &Event) -> Option<Result<StopReason, Error>> {
        if event.task_id == self.task_id
            && let EventBody::MessageAppended(appended) = &event.body
            && let Message::User(message) = &*appended.message
        {
            self.answer.inserted(message).await;
        }
        for update in self.updates.event(event) {
            self.send(update).await;
        }
        if let EventBody::ApprovalRequested(requested) = &event.body {
            self.ask(Approval::requested(event.task_id.clone(), requested, event.at));
        }
        if let EventBody::ApprovalDecided(decided) = &event.body
            && let Some(question) = self.asking.get(&decided.approval_id)
        {
            question.cancel();
        }
        let EventBody::StatusChanged(change) = &event.body else { return None };
        if event.task_id != self.task_id {
            return None;
        }
        let end = self.end(change).await;
        if end.is_none() {
            self.state(change).await;
        }
        end
    }

    /// The state of the session while the task has this status.
    async fn state(&mut self, change: &StatusChanged) {
        let waits_for_person = change.waiting_for == Some(WaitingFor::Approval);
        let state =
            if waits_for_person { SessionState::RequiresAction } else { SessionState::Running };
        self.answer.state(state).await;
    }

    /// How the turn ends with this status, if it does.
    async fn end(&mut self, change: &StatusChanged) -> Option<Result<StopReason, Error>> {
        match change.status {
            TaskStatus::Completed => {
                if let Some(result) = self.updates.result(change) {
                    self.send(result).await;
                }
                let is_cut = self.updates.last_stop == antiphon_core::StopReason::Length;
                Some(Ok(if is_cut { StopReason::MaxTokens } else { StopReason::EndTurn }))
            }
            TaskStatus::Canceled => Some(Ok(StopReason::Cancelled)),
            TaskStatus::Failed => Some(failure(change)),
            // Another terminal interrupted or paused it.
            TaskStatus::InputRequired if change.waiting_for == Some(WaitingFor::Resume) => {
                Some(Ok(StopReason::Cancelled))
            }
            TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => None,
        }
    }

    /// Asks the person at the editor about a call.
    fn ask(&mut self, approval: Approval) {
        let id = approval.approval_id.clone();
        if self.asking.contains_key(&id) {
            return;
        }
        let withdrawn = CancellationToken::new();
        self.asking.insert(id, withdrawn.clone());
        let (editor, participant) = (Arc::clone(&self.editor), self.session.participant.clone());
        let session_id = self.session.id.to_string();
        self.questions.spawn(async move {
            permission::ask(&editor, &session_id, &participant, approval, withdrawn).await
        });
    }

    /// Approvals of the tree that were pending before.
    async fn pending(&self, root: &TaskId) -> Vec<Approval> {
        let Ok(connection) = self.session.participant.connection().await else { return Vec::new() };
        let which = ApprovalSelector::PendingIn(root.clone());
        connection.reader().approvals(which).await.unwrap_or_default()
    }

    async fn note_pending(&self, id: &ApprovalId) {
        let text = format!(
            "(this editor did not ask: see `antiphon approvals show {id}`, and answer with `antiphon approvals allow`, `answer` or `deny`)"
        );
        let chunk = ContentChunk::new(ContentBlock::Text(TextContent::new(text)));
        self.send(SessionUpdate::AgentMessageChunk(chunk)).await;
    }

    async fn send(&self, update: SessionUpdate) {
        self.editor.update(self.session.id.as_str(), update).await;
    }
}

fn failure(change: &StatusChanged) -> Result<StopReason, Error> {
    let detail = change.detail.clone().unwrap_or_default();
    let code = detail["code"].as_str().unwrap_or("failed");
    match (code, detail["limit"]["limit"].as_str()) {
        ("limit_reached", Some("turns" | "tool_calls")) => Ok(StopReason::MaxTurnRequests),
        ("limit_reached", Some("tokens")) => Ok(StopReason::MaxTokens),
        ("refused", _) => Ok(StopReason::Refusal),
        _ => {
            let message = detail["error"].as_str().unwrap_or("the task failed");
            let error = Error::new(-32603, escaped(message).to_string());
            Err(error.data(json!({ "code": code })))
        }
    }
}

pub(crate) fn failed(error: ProjectError) -> Error {
    let code = match &error {
        ProjectError::InvalidInput(_) => -32602,
        ProjectError::Refused(_)
        | ProjectError::Unavailable(_)
        | ProjectError::OwnerEnds(_)
        | ProjectError::Failed(_) => -32603,
    };
    Error::new(code, error.to_string())
}

fn raw(value: &impl serde::Serialize) -> Result<RawJson, ProjectError> {
    RawJson::of(value).map_err(|error| ProjectError::Failed(error.to_string()))
}
