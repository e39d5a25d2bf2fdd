//! The project of this process, which owns its journal or is a client of the owner.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use antiphon_api::{RunStarted, RunTarget, SendMessage};
use antiphon_core::{
    AgentName, HandlingMode, ModelRef, RawJson, SessionId, TaskId, TaskLimits, TaskSummary,
    WaitingFor,
};
use antiphon_permissions::PermissionMode;
use antiphon_process::{Connection, Participant};
use antiphon_project::error::ProjectError;
use antiphon_project::models::Route;
use antiphon_project::run_request::{RunRequest, RunSession};
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::Orchestrator;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::server::ended;
use super::{NewCall, source};
use crate::agent_offer::{AgentOffer, offers};
use crate::failure::Failure;
use crate::feed::Feed;

/// Tasks that a process remembers as its own, at most. An older one is followed as the task of another process.
const STARTED_MAX: usize = 1000;

/// This process in its project.
pub(crate) struct ProcessBackend {
    pub(crate) participant: Participant,
    /// Agents that are offered; all when empty.
    pub(crate) agents: Vec<AgentName>,
    /// The model of the tasks; the agent's or the configured one when absent.
    pub(crate) model: Option<ModelRef>,
    /// Permission mode of the tasks; the configured one when absent.
    pub(crate) mode: Option<PermissionMode>,
    /// Canceled when the client is gone.
    pub(crate) ending: CancellationToken,
    /// Tasks that this process has started, the oldest first, with what it gave to each. It gives nothing to others.
    pub(crate) started: Mutex<VecDeque<(TaskId, TaskProcess)>>,
}

impl ProcessBackend {
    pub(crate) async fn connection(&self) -> Result<Connection, Failure> {
        Ok(self.participant.connection().await?)
    }

    pub(super) async fn reader(&self) -> Result<Orchestrator, Failure> {
        Ok(self.connection().await?.reader().clone())
    }

    pub(super) async fn agents(&self) -> Result<Vec<AgentOffer>, Failure> {
        let Connection::Server(server, _) = self.connection().await? else {
            return Err(no_owner());
        };
        let defined = server.answer(server.client.agents().await)?.agents;
        let is_offered = |name: &AgentName| self.agents.is_empty() || self.agents.contains(name);
        let shown = defined.into_iter().filter(|agent| is_offered(&agent.name));
        Ok(offers(shown.map(|agent| (agent.name, agent.description))))
    }

    pub(super) async fn start(&self, call: NewCall<'_>) -> Result<(TaskId, Feed), Failure> {
        let process = self.process()?;
        let session = match call.session {
            Some((session_id, last_task)) => RunSession::Stored { session_id, last_task },
            None => RunSession::New { session_id: new_session()? },
        };
        let request = RunRequest {
            prompt: call.message,
            blocks: None,
            agent: Some(call.agent.name.to_string()),
            model: self.model.clone(),
            system: None,
            session: Some(session),
            limits: TaskLimits::default(),
            output_schema: None,
            plan: false,
            compact: false,
            route: Route { process: Some(process.clone()), ..Route::default() },
            source: Some(source()?),
        };
        let target = RawJson::of(&request)
            .map_err(|error| ProjectError::Failed(error.to_string()))
            .map(RunTarget::New)?;
        // A repeated call is the same task, also for the next owner when this one ends meanwhile.
        let key = match call.key {
            Some(key) => format!("mcp/{}/{key}", call.agent.name),
            None => Uuid::new_v4().to_string(),
        };
        let started = self.participant.start(&process, target, Some(&key)).await?;
        let task_id = started.task_id.clone();
        self.remember(&task_id, &process);
        let followed = Box::new(self.participant.follow(process, &started));
        Ok((task_id.clone(), Feed::Process { followed, task_id }))
    }

    pub(super) async fn follow(&self, task: &TaskSummary) -> Result<Feed, Failure> {
        let (task_id, root) = (task.task_id.clone(), task.root.clone());
        let after = self.reader().await?.head().await?;
        let started = RunStarted { task_id: task_id.clone(), root, after, warnings: Vec::new() };
        let followed = match self.given_to(&task_id) {
            Some(process) => self.participant.follow(process, &started),
            None => self.participant.watch(&started),
        };
        Ok(Feed::Process { followed: Box::new(followed), task_id })
    }

    pub(super) async fn send(&self, task: &TaskSummary, text: String) -> Result<(), Failure> {
        let Connection::Server(server, _) = self.connection().await? else {
            return Err(no_owner());
        };
        if task.status.is_terminal() {
            return Err(ended());
        }
        let message = SendMessage::text(&text, HandlingMode::Queue)
            .map_err(|error| Failure::invalid(format!("`message`: {error}")))?;
        let message = SendMessage { from: Some(source()?), ..message };
        server.answer(server.client.send_message(&task.task_id, &message, None).await)?;
        if task.waiting_for == Some(WaitingFor::Resume) {
            match self.given_to(&task.task_id) {
                Some(process) => {
                    let target = RunTarget::Resume(task.task_id.clone());
                    self.participant.start(&process, target, None).await?;
                }
                None => self.connection().await?.resume(&task.task_id).await?,
            }
        }
        Ok(())
    }

    fn remember(&self, task_id: &TaskId, process: &TaskProcess) {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.retain(|(known, _)| known != task_id);
        if started.len() >= STARTED_MAX {
            started.pop_front();
        }
        started.push_back((task_id.clone(), process.clone()));
    }

    /// What this process gave to a task when it started the task.
    fn given_to(&self, task_id: &TaskId) -> Option<TaskProcess> {
        let started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.iter().find(|(known, _)| known == task_id).map(|(_, process)| process.clone())
    }

    /// What this process gives to a task.
    fn process(&self) -> Result<TaskProcess, Failure> {
        let environment = self.participant.environment();
        let settings = self.participant.project().settings(environment)?;
        let process = TaskProcess {
            id: Some(Uuid::new_v4()),
            folder: environment.current_dir.clone(),
            mode: self.mode,
            ..TaskProcess::default()
        };
        Ok(process.at_providers_of(&settings))
    }
}

fn new_session() -> Result<SessionId, Failure> {
    let id = SessionId::parse(&Uuid::new_v4().to_string());
    id.map_err(|error| Failure::invalid(error.to_string()))
}

fn no_owner() -> Failure {
    ProjectError::Unavailable("the journal has no owner: try again".to_owned()).into()
}
