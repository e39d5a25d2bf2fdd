//! The runner: finds the remote agent and follows the task there.

use std::sync::Arc;

use a2a::{Part, SendMessageResponse, TaskState};
use antiphon_client::RetryPolicy;
use antiphon_core::port::{
    Clock, RemoteError, RemoteTask, Runner, RunnerError, RunnerTask, SystemClock,
};
use antiphon_core::{InteractionContent, MessageQueued};
use antiphon_followed_task::LocalTask;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use crate::connection::{self, Connection};
use crate::failure::Failure;
use crate::follower::Follower;
use crate::note::Note;
use crate::question;
use crate::remote_agents::{RemoteAgent, RemoteAgents};
use crate::remote_work::RemoteWork;
use crate::request;

/// Kind of the runner.
pub const A2A_RUNNER: &str = "a2a";

/// The runner's part of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct A2aTarget {
    /// Name of the remote agent; the only configured one when absent.
    #[serde(default)]
    peer: Option<String>,
}

/// Runs tasks at remote agents.
#[derive(Debug, Clone)]
pub struct A2aRunner {
    agents: RemoteAgents,
    retry: RetryPolicy,
}

impl A2aRunner {
    /// A runner with these remote agents. `retry` says how often one that does not answer is tried again; an answer
    /// starts the count anew. After the last attempt the task waits for it.
    pub fn new(agents: RemoteAgents, retry: RetryPolicy) -> Self {
        Self { agents, retry }
    }

    fn find(&self, config: &Value) -> Result<&Arc<RemoteAgent>, String> {
        let target = A2aTarget::deserialize(config)
            .map_err(|error| format!("the config of `a2a` is {{\"peer\"?}}: {error}"))?;
        let found = match &target.peer {
            Some(name) => self.agents.find(name),
            None => self.agents.only(),
        };
        let known = || self.agents.names().collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| match (&target.peer, self.agents.names().next()) {
            (Some(name), None) => {
                format!("there is no remote agent `{name}`: none is configured")
            }
            (Some(name), Some(_)) => format!("there is no remote agent `{name}`, only {}", known()),
            (None, None) => "there is no remote agent: none is configured".to_owned(),
            (None, Some(_)) => {
                format!("there are several remote agents, name one with `peer`: {}", known())
            }
        })
    }

    async fn connect(
        &self,
        task: RemoteTask<'_>,
    ) -> Result<(&Arc<RemoteAgent>, Arc<Connection>), RemoteError> {
        let agent = self.find(task.config).map_err(|reason| RemoteError::Refused { reason })?;
        match connection::connect(agent).await {
            Ok(connection) => Ok((agent, connection)),
            Err(failure) => Err(failure.of_agent(&agent.name)),
        }
    }
}

#[async_trait]
impl Runner for A2aRunner {
    fn kind(&self) -> &'static str {
        A2A_RUNNER
    }

    fn uses_run_provider(&self) -> bool {
        false
    }

    fn is_orchestrator(&self) -> bool {
        true
    }

    fn relays_messages(&self) -> bool {
        false
    }

    fn check(&self, config: &Value) -> Result<(), String> {
        self.find(config).map(drop)
    }

    /// The remote agent is named, also when it is the only one now.
    fn with_defaults(&self, config: &Value) -> Value {
        let mut config = config.clone();
        if let (Ok(agent), Value::Object(fields)) = (self.find(&config), &mut config) {
            fields.insert("peer".to_owned(), Value::String(agent.name.clone()));
        }
        config
    }

    /// A task that may have been sent is sent again under its id, and canceled: the remote agent has one task for the id.
    async fn cancel_remote(&self, task: RemoteTask<'_>) -> Result<(), RemoteError> {
        let (agent, connection) = self.connect(task).await?;
        let canceled = match task.remote_task_id {
            Some(task_id) => connection.cancel(task_id.as_str()).await,
            None => cancel_by_message(&connection, task.task_id.as_str()).await,
        };
        canceled.map_err(|failure| failure.of_agent(&agent.name))
    }

    async fn send_remote(
        &self,
        task: RemoteTask<'_>,
        message: &MessageQueued,
    ) -> Result<(), RemoteError> {
        let (agent, connection) = self.connect(task).await?;
        let Some(task_id) = task.remote_task_id else {
            let reason = format!("the remote agent `{}` has not started the task yet", agent.name);
            return Err(RemoteError::Unavailable { reason });
        };
        let sent = async {
            let remote = connection.task(task_id.as_str()).await?;
            if remote.status.state.is_terminal() {
                return Ok(Err(RemoteError::Ended));
            }
            let text = match &message.content {
                InteractionContent::Message { body, .. } => body.as_str(),
                InteractionContent::Request { .. }
                | InteractionContent::Response { .. }
                | InteractionContent::Ack { .. } => "",
            };
            let decision = Some(&remote.status)
                .filter(|status| status.state == TaskState::InputRequired)
                .and_then(|status| question::decision(status, text));
            let parts = match decision {
                Some(part) => vec![part],
                None => request::parts_of(&message.user_message(SystemClock.now())),
            };
            let id = message.id.to_string();
            let message = request::request(&id, Some(task_id), None, parts);
            connection.send(&message).await.map(|_| Ok(()))
        };
        sent.await.map_err(|failure: Failure| failure.of_agent(&agent.name))?
    }

    async fn run(&self, run: RunnerTask) -> Result<(), RunnerError> {
        let found = self.find(&run.config);
        let agent = found.map_err(|reason| RunnerError::Refused { reason })?;
        let local = LocalTask::read(&*run.journal, &run.task_id).await?;
        let follower = Follower {
            agent: Arc::clone(agent),
            retry: self.retry,
            waits: self.retry.waits(),
            note: Note::read(local.note.as_ref()),
            local,
            work: RemoteWork::default(),
            recorded: 0,
            events: 0,
            journal: run.journal,
            display: run.display,
            cancel: run.cancel,
            canceled: false,
            interrupt: run.interrupt,
            updates: run.updates,
        };
        tokio::select! {
            // The remote task goes on; the next run reads what happened.
            () = run.shutdown => Ok(()),
            ended = follower.run() => ended,
        }
    }
}

async fn cancel_by_message(connection: &Connection, id: &str) -> Result<(), Failure> {
    let parts = vec![Part::text("This task was canceled before it began: do nothing.")];
    match connection.send(&request::request(id, None, None, parts)).await? {
        SendMessageResponse::Task(task) => connection.cancel(&task.id).await,
        SendMessageResponse::Message(_) => Ok(()),
    }
}
