//! Carries out control requests: spawn, stop and update agents, send messages, start and cancel tasks.
//!
//! The same key has one effect. Tasks and interactions are recorded under it; of every other order the
//! outcome is recorded.

mod recorded;
mod refusal;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use antiphon_agent_files::FolderOwner;
use antiphon_core::port::{
    Clock, IdempotencyKey, OrderExecutor, SystemClock, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentDefinition, AgentName, Command, ErrorCode, InteractionContent, InteractionId, ModelRef,
    Order, OrderError, OrderResult, OrderStatus, Provenance, RenderMetadata, ResponseStatus,
    RunnerConfig, Runtime, Sender, TaskId, TaskLimits, TaskStatus, UserMessage, Wait,
    escape_hidden_text,
};
use antiphon_runtime::{
    Arrival, INTERACTION_BYTES_MAX, NewTask, Orchestrator, OrchestratorError,
    REQUEST_TIMEOUT_S_DEFAULT, Receipt, Rejection,
};
use async_trait::async_trait;
use chrono::TimeDelta;
use serde_json::Value;

use crate::agent_files::edit::{self, AgentFileWrite, EditError, NewAgent};
use crate::agent_files::{AgentFiles, context_file, new_agent_name};
use crate::task::project_task_factory::ProjectTaskFactory;
use crate::{TaskFactory, TaskRequest, render_class, unknown_agent};
use recorded::RecordedOrder;
use refusal::{failed, refused, rejected, task_refused};

/// The folders of requests, below the project's root.
pub const REQUEST_FOLDERS: [&str; 2] = [".antiphon/requests", ".ideai/requests"];

/// The profile of agents that run in the native loop.
const NATIVE: &str = "native";

/// The runner of agents in terminals.
const TERMINAL: &str = "terminal";

/// Carries out control requests.
pub struct ProjectOrders {
    /// Records and runs what the orders ask for.
    pub orchestrator: Orchestrator,
    /// Builds the tasks.
    pub tasks: Arc<ProjectTaskFactory>,
    /// Files of the project's agents.
    pub files: AgentFiles,
    /// Names of the terminal profiles that the user allows.
    pub terminals: Vec<String>,
    /// Whether this process runs tasks.
    pub execution: Execution,
}

/// How an agent runs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Profile {
    /// In the native loop.
    Native,
    /// In a terminal, with the profile of this name.
    Terminal(String),
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => NATIVE,
            Self::Terminal(name) => name,
        })
    }
}

/// Whether the process that carries out orders also runs tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It runs tasks.
    Running,
    /// It records orders; a server runs their tasks later.
    RecordOnly,
}

#[async_trait]
impl OrderExecutor for ProjectOrders {
    async fn execute(
        &self,
        order: Order,
        requester: &str,
        key: &str,
    ) -> Result<OrderResult, OrderError> {
        let Some(recorded) = RecordedOrder::of(&order, key) else {
            return self.act(order, requester, key).await;
        };
        if let Some(done) = recorded.outcome(&self.orchestrator).await? {
            return Ok(done);
        }
        let done = self.act(order, requester, key).await?;
        recorded.record(&self.orchestrator, requester, done).await
    }
}

impl ProjectOrders {
    async fn act(
        &self,
        order: Order,
        requester: &str,
        key: &str,
    ) -> Result<OrderResult, OrderError> {
        match order {
            Order::Control(Command::SpawnAgent { name, profile, context }) => {
                let name = agent_name(&name)?;
                self.spawn(&name, &profile, context, requester).await
            }
            Order::Control(Command::StopAgent { name }) => {
                self.stop(&agent_name(&name)?, key).await
            }
            Order::Control(Command::UpdateAgentContext { name, context }) => {
                self.update(&agent_name(&name)?, context).await
            }
            Order::Send { to, content, mode, salience, wake } => {
                let from = sender(requester)?;
                let class = render_class(&from, &content);
                let is_request = matches!(content, InteractionContent::Request { .. });
                let timeout = TimeDelta::seconds(REQUEST_TIMEOUT_S_DEFAULT.into());
                let arrival = Arrival {
                    to,
                    from,
                    content,
                    mode,
                    render_metadata: salience.map(|salience| RenderMetadata { class, salience }),
                    wake,
                    until: is_request.then(|| SystemClock.now() + timeout),
                    key: Some(key.to_owned()),
                    payload: None,
                    provenance: Provenance::File(requester.to_owned()),
                };
                self.send(arrival).await
            }
            Order::Invoke { agent, prompt, model, wait } => {
                let provenance = Provenance::File(requester.to_owned());
                self.invoke(agent, prompt, model, wait, (key, provenance)).await
            }
            Order::Respond { request_id, status, result } => {
                self.respond(requester, request_id, status, result).await
            }
            Order::Cancel { task_id } => self.cancel(task_id).await,
        }
    }

    async fn spawn(
        &self,
        name: &AgentName,
        profile: &str,
        context: Option<String>,
        requester: &str,
    ) -> Result<OrderResult, OrderError> {
        let profile = self.profile(profile)?;
        let created = match self.files.find(name).await {
            Some(entry) => {
                check_profile(&self.orchestrator, &entry.definition, &profile)?;
                None
            }
            None => {
                let path = self.create(name, profile, context, requester).await?;
                self.files.allow_unsandboxed(name).await;
                Some(path)
            }
        };
        let provenance = Provenance::File(requester.to_owned());
        let started = self.orchestrator.start_agent(name, &provenance).await.map_err(failed);
        let started = match (started, created) {
            // What is refused leaves nothing behind. An order that is tried again finds its file.
            (Err(error @ OrderError::Refused { .. }), Some(path)) => {
                if let Err(error) = self.files.remove(&path).await {
                    tracing::warn!(agent.name = %name, ?error, "the file of a refused agent stays");
                }
                return Err(error);
            }
            (started, _) => started?,
        };
        let status =
            if started.already { OrderStatus::AlreadyRunning } else { OrderStatus::Started };
        Ok(OrderResult { task_id: Some(started.task_id), ..about(status, name) })
    }

    /// The profile of that name, in any case of letters.
    fn profile(&self, name: &str) -> Result<Profile, OrderError> {
        if name.eq_ignore_ascii_case(NATIVE) {
            return Ok(Profile::Native);
        }
        // A profile of exactly that name comes first.
        let exact = self.terminals.iter().find(|known| *known == name);
        let find = || self.terminals.iter().find(|known| known.eq_ignore_ascii_case(name));
        if let Some(known) = exact.or_else(find) {
            return Ok(Profile::Terminal(known.clone()));
        }
        let mut known = vec![NATIVE.to_owned()];
        known.extend(self.terminals.iter().cloned());
        let known = known.join(", ");
        Err(refused(
            ErrorCode::InvalidRequest,
            format!(
                "there is no profile `{name}`, only: {known}. Define a terminal profile as \
                 [terminals.{name}] in your configuration"
            ),
        ))
    }

    /// Writes the file of a new agent. Returns its path.
    async fn create(
        &self,
        name: &AgentName,
        profile: Profile,
        context: Option<String>,
        requester: &str,
    ) -> Result<PathBuf, OrderError> {
        let invalid = |reason| refused(ErrorCode::InvalidRequest, reason);
        new_agent_name(name.as_str()).map_err(invalid)?;
        let (folder, root, name) =
            (self.files.folder.clone(), self.files.root.clone(), name.clone());
        let path = folder.path.join(format!("{name}.md"));
        let description = format!("Spawned by {requester}.");
        self.write_file(move || {
            let resolve = |context: &String| context_file::resolve(&root, context);
            let context = context.as_ref().map(resolve).transpose().map_err(EditError::Refused)?;
            let agent = NewAgent {
                name: &name,
                description: &description,
                terminal: match &profile {
                    Profile::Native => None,
                    Profile::Terminal(profile) => Some(profile),
                },
                context: context.as_deref(),
            };
            edit::create(&folder, &agent)
        })
        .await?;
        Ok(path)
    }

    async fn stop(&self, name: &AgentName, key: &str) -> Result<OrderResult, OrderError> {
        let key = Some(IdempotencyKey(format!("drop:stop:{name}:{key}")));
        let stopped = self.orchestrator.stop_agent(name, key).await.map_err(failed)?;
        if stopped.is_some() {
            return Ok(OrderResult { task_id: stopped, ..about(OrderStatus::Stopped, name) });
        }
        let last = self.orchestrator.agent_task(name).await.map_err(failed)?;
        if last.is_none() && self.files.find(name).await.is_none() {
            return Err(self.unknown(name));
        }
        Ok(about(OrderStatus::NotRunning, name))
    }

    async fn update(&self, name: &AgentName, context: String) -> Result<OrderResult, OrderError> {
        let Some(entry) = self.files.find(name).await else { return Err(self.unknown(name)) };
        if entry.origin == FolderOwner::User {
            let path = entry.path.display();
            let message = format!("`{name}` belongs to you, not to this project: edit {path}");
            return Err(refused(ErrorCode::Forbidden, message));
        }
        if let Some(imported) = &entry.imported {
            let (path, program) = (entry.path.display(), imported.format);
            let message = format!("`{name}` is an agent of {program}: edit {path}");
            return Err(refused(ErrorCode::Forbidden, message));
        }
        self.write_file(move || edit::rewrite(&entry.path, &entry.definition, &context)).await?;
        self.files.allow_unsandboxed(name).await;
        Ok(about(OrderStatus::Updated, name))
    }

    async fn send(&self, arrival: Arrival) -> Result<OrderResult, OrderError> {
        let to = arrival.to.clone();
        let (status, id, task_id) = match self.orchestrator.admit(arrival).await.map_err(failed)? {
            Receipt::Accepted { id, task_id } => (OrderStatus::Accepted, id, task_id),
            Receipt::Deduplicated { id, task_id } => (OrderStatus::Deduplicated, id, task_id),
            Receipt::Filtered => return Ok(about(OrderStatus::Accepted, &to)),
            Receipt::Rejected(rejection) => return Err(rejected(&rejection)),
        };
        Ok(OrderResult { task_id: Some(task_id), interaction_id: Some(id), ..about(status, &to) })
    }

    /// Answers a request that was sent to the requester, which is an agent.
    async fn respond(
        &self,
        requester: &str,
        request: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> Result<OrderResult, OrderError> {
        let name = agent_name(requester)?;
        let bytes = result.to_string().len();
        if bytes > INTERACTION_BYTES_MAX {
            return Err(rejected(&Rejection::TooLong { bytes }));
        }
        let answered = self.orchestrator.respond(&name, request, status, result).await;
        if !answered.map_err(failed)? {
            let message = format!(
                "`{name}` has no open request {request}: it was answered, timed out, or was sent to another \
                 agent"
            );
            return Err(refused(ErrorCode::NotFound, message));
        }
        Ok(OrderResult { interaction_id: Some(request), ..about(OrderStatus::Answered, &name) })
    }

    async fn invoke(
        &self,
        agent: Option<String>,
        prompt: String,
        model: Option<String>,
        wait: Wait,
        (key, provenance): (&str, Provenance),
    ) -> Result<OrderResult, OrderError> {
        if wait == Wait::ForResult && self.execution == Execution::RecordOnly {
            let message =
                "no server runs tasks here: start `antiphon serve` and try again, or omit `wait`";
            return Err(refused(ErrorCode::ServiceUnavailable, message.to_owned()));
        }
        let model = model.map(|model| ModelRef::parse(&model)).transpose();
        let model = model.map_err(|error| refused(ErrorCode::InvalidRequest, error.to_string()))?;
        let request = TaskRequest {
            agent: agent.clone(),
            model,
            message: UserMessage::text(escape_hidden_text(&prompt), SystemClock.now()),
            history: Vec::new(),
            system_prompt: None,
            tools: None,
            agents: None,
            external_tools: Vec::new(),
            limits: TaskLimits::default(),
            output_schema: None,
            session_id: None,
        };
        let task = self.tasks.task(request).await.map_err(task_refused)?;
        let key = Some(IdempotencyKey(format!("drop:{key}")));
        let task = NewTask { key, provenance, ..task };
        let task_id = self.orchestrator.invoke(task).await.map_err(failed)?.task_id;
        let done = match wait {
            Wait::No => OrderResult::new(OrderStatus::Accepted),
            Wait::ForResult => self.result(&task_id).await?,
        };
        Ok(OrderResult { agent, task_id: Some(task_id), ..done })
    }

    /// Waits until a task has ended, also while it is suspended.
    async fn result(&self, task_id: &TaskId) -> Result<OrderResult, OrderError> {
        loop {
            let unavailable =
                |error: OrchestratorError| OrderError::Unavailable { reason: error.to_string() };
            self.orchestrator.rest(task_id).await.map_err(unavailable)?;
            let state = self.orchestrator.task_alone(task_id).await.map_err(unavailable)?;
            let status = match state.status {
                TaskStatus::Completed => OrderStatus::Completed,
                TaskStatus::Failed => OrderStatus::Failed,
                TaskStatus::Canceled => OrderStatus::Canceled,
                TaskStatus::Pending | TaskStatus::Running | TaskStatus::InputRequired => {
                    let (task_id, seen) = (task_id.clone(), state.position);
                    let mut events = self.orchestrator.follow(Some(task_id), seen);
                    events.next().await.map_err(|error| failed(error.into()))?;
                    continue;
                }
            };
            return Ok(OrderResult { result: state.detail, ..OrderResult::new(status) });
        }
    }

    /// The task of this id, or the only one whose id begins so.
    async fn named(&self, name: TaskId) -> Result<TaskId, OrderError> {
        const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();
        let which = TaskSelector::IdPrefix(name.to_string());
        let found = self.orchestrator.tasks(TaskQuery { which, limit: TWO }).await;
        let found: Vec<TaskId> =
            found.map_err(failed)?.into_iter().map(|task| task.task_id).collect();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [_, _, ..] if !found.contains(&name) => Err(refused(
                ErrorCode::InvalidRequest,
                format!("more than one task begins with `{name}`: give a longer prefix"),
            )),
            [] | [_, _, ..] => Ok(name),
        }
    }

    async fn cancel(&self, name: TaskId) -> Result<OrderResult, OrderError> {
        let task_id = self.named(name).await?;
        let status = match self.orchestrator.cancel(&task_id).await {
            // A repeated order finds the task canceled.
            Ok(()) | Err(OrchestratorError::Ended { status: TaskStatus::Canceled, .. }) => {
                OrderStatus::Canceled
            }
            Err(OrchestratorError::Ended { .. }) => OrderStatus::AlreadyEnded,
            Err(error) => return Err(failed(error)),
        };
        Ok(OrderResult { task_id: Some(task_id), ..OrderResult::new(status) })
    }

    /// Writes an agent file on a blocking thread, and reads the files again.
    async fn write_file(
        &self,
        write: impl FnOnce() -> Result<AgentFileWrite, EditError> + Send + 'static,
    ) -> Result<(), OrderError> {
        self.files.write(write).await.map_err(|error| match error {
            EditError::Refused(reason) => refused(ErrorCode::InvalidRequest, reason),
            EditError::Exists(path) => refused(
                ErrorCode::Conflict,
                format!("{} exists and is not a valid agent: fix it", path.display()),
            ),
            EditError::Unwritable(reason) => OrderError::Unavailable { reason },
        })
    }

    fn unknown(&self, name: &AgentName) -> OrderError {
        rejected(&unknown_agent(name, &self.tasks.agents()))
    }
}

/// Refuses to start an agent in another profile than its file says.
fn check_profile(
    orchestrator: &Orchestrator,
    agent: &AgentDefinition,
    requested: &Profile,
) -> Result<(), OrderError> {
    let profile = |runner: &RunnerConfig| runner.config["profile"].as_str().map(str::to_owned);
    let terminal =
        |runner: &RunnerConfig| Some(runner).filter(|it| it.kind == TERMINAL).and_then(profile);
    let wished = |runtime: &Runtime| match runtime {
        Runtime::Runner(runner) => terminal(runner),
        Runtime::Local => None,
    };
    // The runtime that it gets here; when it gets none, that is said at its start.
    let own = match orchestrator.choose_runner(&agent.runtimes) {
        Ok(runner) => runner.as_ref().and_then(terminal),
        Err(_) => agent.runtimes.iter().find_map(wished),
    };
    let own = own.map_or(Profile::Native, Profile::Terminal);
    if own == *requested {
        return Ok(());
    }
    let name = &agent.name;
    let message = format!(
        "`{name}` exists and runs in the profile `{own}`, not in `{requested}`: spawn it in `{own}`, \
         change its file, or use another name"
    );
    Err(refused(ErrorCode::Conflict, message))
}

fn about(status: OrderStatus, agent: &AgentName) -> OrderResult {
    OrderResult { agent: Some(agent.to_string()), ..OrderResult::new(status) }
}

/// The sender of a dropped message is a peer of the agent that reads it, never the user.
fn sender(requester: &str) -> Result<Sender, OrderError> {
    let wrong = |error| {
        let message = format!("`{requester}` cannot send messages: {error}. Rename its folder");
        refused(ErrorCode::Forbidden, message)
    };
    AgentName::parse(requester).map(Sender::Peer).map_err(wrong)
}

fn agent_name(name: &str) -> Result<AgentName, OrderError> {
    AgentName::parse(name).map_err(|error| {
        refused(ErrorCode::InvalidRequest, format!("`{name}` is not a valid agent name: {error}"))
    })
}
