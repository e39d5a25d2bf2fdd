//! Carries out control requests: spawn, stop and update agents, send messages, start and cancel tasks.
//!
//! The same key has one effect. Tasks and interactions are recorded under it; of every other order the
//! outcome is recorded.

mod folders;
mod recorded;
mod refusal;

use std::sync::Arc;

use antiphon_agent_files::Origin;
use antiphon_core::port::{Clock, IdempotencyKey, SystemClock};
use antiphon_core::{
    AgentName, Command, ErrorCode, InteractionContent, ModelRef, RenderMetadata, Sender, TaskId,
    TaskLimits, TaskStatus, UserMessage,
};
use antiphon_file_drop::{Order, OrderError, OrderResult, OrderStatus, Orders, Wait};
use antiphon_runtime::{
    Arrival, NewTask, Orchestrator, OrchestratorError, REQUEST_TIMEOUT_S_DEFAULT, Receipt,
};
use async_trait::async_trait;
use chrono::TimeDelta;

use crate::agent_files::AgentFiles;
use crate::agent_files::edit::{self, EditError, NewAgent};
use crate::task::project_task_factory::ProjectTaskFactory;
use crate::{TaskFactory, TaskRequest, render_class, unknown_agent};
pub use folders::drop_settings;
use recorded::RecordedOrder;
use refusal::{failed, refused, rejected, task_refused};

/// The profile of agents that run in the native loop.
const NATIVE: &str = "native";

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

/// Whether the process that carries out orders also runs tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It runs tasks.
    Running,
    /// It records orders; a server runs their tasks later.
    RecordOnly,
}

#[async_trait]
impl Orders for ProjectOrders {
    async fn carry_out(
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
                    wake: match wake {
                        antiphon_file_drop::Wake::Yes => antiphon_runtime::Wake::Yes,
                        antiphon_file_drop::Wake::No => antiphon_runtime::Wake::No,
                    },
                    until: is_request.then(|| SystemClock.now() + timeout),
                    key: Some(key.to_owned()),
                    payload: None,
                };
                self.send(arrival).await
            }
            Order::Invoke { agent, prompt, model, wait } => {
                self.invoke(agent, prompt, model, wait, key).await
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
        if self.files.find(name).await.is_none() {
            self.create(name, profile, context, requester).await?;
        }
        let started = self.orchestrator.start_agent(name).await.map_err(failed)?;
        let status =
            if started.already { OrderStatus::AlreadyRunning } else { OrderStatus::Started };
        Ok(OrderResult { task_id: Some(started.task_id), ..about(status, name) })
    }

    async fn create(
        &self,
        name: &AgentName,
        profile: &str,
        context: Option<String>,
        requester: &str,
    ) -> Result<(), OrderError> {
        let terminal = match profile {
            NATIVE => None,
            named if self.terminals.iter().any(|known| known == named) => Some(named.to_owned()),
            other => {
                let mut known = vec![NATIVE.to_owned()];
                known.extend(self.terminals.iter().cloned());
                let known = known.join(", ");
                return Err(refused(
                    ErrorCode::InvalidRequest,
                    format!(
                        "there is no profile `{other}`, only: {known}. Define a terminal profile as \
                         [terminals.{other}] in your configuration"
                    ),
                ));
            }
        };
        let (folder, name) = (self.files.folder.clone(), name.clone());
        let description = format!("Spawned by {requester}.");
        self.write_file(move || {
            let agent = NewAgent {
                name: &name,
                description: &description,
                terminal: terminal.as_deref(),
                context: context.as_deref(),
            };
            edit::create(&folder, &agent)
        })
        .await
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
        if entry.origin == Origin::User {
            let path = entry.path.display();
            let message = format!("`{name}` belongs to you, not to this project: edit {path}");
            return Err(refused(ErrorCode::Forbidden, message));
        }
        self.write_file(move || edit::rewrite(&entry.path, &entry.definition, &context)).await?;
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

    async fn invoke(
        &self,
        agent: Option<String>,
        prompt: String,
        model: Option<String>,
        wait: Wait,
        key: &str,
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
            message: UserMessage::text(prompt, SystemClock.now()),
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
        let task = NewTask { key: Some(IdempotencyKey(format!("drop:{key}"))), ..task };
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
            let state = self
                .orchestrator
                .wait(task_id)
                .await
                .map_err(|error| OrderError::Unavailable { reason: error.to_string() })?;
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

    async fn cancel(&self, task_id: TaskId) -> Result<OrderResult, OrderError> {
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
        write: impl FnOnce() -> Result<(), EditError> + Send + 'static,
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
