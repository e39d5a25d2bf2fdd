//! Agents and their inboxes: messages in, agents started and stopped, requests answered.

use std::sync::Arc;

use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentName, HandlingMode, InteractionId, Provenance, Replied, ResponseStatus, Sender, TaskId,
    TaskSummary, UserMessage,
};
use serde_json::Value;

use crate::inbox::admission::StartPolicy;
use crate::inbox::arrival::{Arrival, Receipt};
use crate::inbox::start_agent::StartedAgent;
use crate::inbox::task_message::TaskMessage;
use crate::inbox::{admission, input_permission, lifecycle, requests, start_agent};
use crate::orchestrator::Orchestrator;
use crate::orchestrator_error::OrchestratorError;

impl Orchestrator {
    /// Sends a message of the owner to a task. When this returns, the message is durable.
    pub async fn send(
        &self,
        task_id: &TaskId,
        message: UserMessage,
        mode: HandlingMode,
    ) -> Result<InteractionId, OrchestratorError> {
        let (from, provenance) = (Sender::User, Provenance::Owner);
        self.send_message(task_id, TaskMessage { message, mode, from, key: None, provenance }).await
    }

    /// Puts an interaction into an agent's inbox. When this returns `Accepted`, it is durable. Starts an agent that
    /// was never started.
    pub async fn admit(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.services.background.check_accepts()?;
        admission::admit(&self.services, arrival, StartPolicy::MayStart).await
    }

    /// Like [`admit`](Self::admit) for a sender that acts for an agent: never starts an agent.
    pub async fn admit_if_started(&self, arrival: Arrival) -> Result<Receipt, OrchestratorError> {
        self.services.background.check_accepts()?;
        admission::admit(&self.services, arrival, StartPolicy::OnlyStarted).await
    }

    /// Starts a resident agent: from now on it reads its inbox. `provenance` is where the order came from.
    pub async fn start_agent(
        &self,
        name: &AgentName,
        provenance: &Provenance,
    ) -> Result<StartedAgent, OrchestratorError> {
        self.services.background.check_accepts()?;
        start_agent::start_agent(&self.services, name, provenance).await
    }

    /// Allows the agent file of a project to start programs without a sandbox, from now on and as long as its
    /// content is the same. Only for an order of a person: the caller checked that. Does nothing for an
    /// agent that needs no permission.
    pub async fn allow_unsandboxed(&self, name: &AgentName) -> Result<(), OrchestratorError> {
        let deps = &self.services.deps;
        let untrusted =
            deps.agents.as_ref().and_then(|agents| agents.unsandboxed(name.as_str()).err());
        let Some(file) = untrusted else { return Ok(()) };
        let rule = input_permission::agent_start_rule(name.as_str(), &file.version);
        let kept = deps.gate.remember(&rule).await;
        kept.map_err(|reason| OrchestratorError::RuleNotSaved { reason })
    }

    /// Stops a resident agent. Unread messages stay in its inbox until it starts again; open requests
    /// are answered as failed. Returns the id of the stopped task, if one ran. With a `key`, a
    /// repeated call stops the same task and no later one.
    pub async fn stop_agent(
        &self,
        name: &AgentName,
        key: Option<IdempotencyKey>,
    ) -> Result<Option<TaskId>, OrchestratorError> {
        start_agent::stop_agent(&self.services, name, key).await
    }

    /// Answers a request in the name of the agent that it was sent to. Returns false when the agent has no such open
    /// request. The same answer a second time changes nothing.
    pub async fn respond(
        &self,
        name: &AgentName,
        request: InteractionId,
        status: ResponseStatus,
        result: Value,
    ) -> Result<bool, OrchestratorError> {
        let Some(task) = self.agent_task(name).await? else { return Ok(false) };
        let services = Arc::clone(&self.services);
        let answering = async move {
            requests::answer_for_agent(&services, &task.task_id, request, status, &result).await
        };
        self.services.background.run_detached(answering).await
    }

    /// The newest task of a resident agent, ended or not.
    pub async fn agent_task(
        &self,
        name: &AgentName,
    ) -> Result<Option<TaskSummary>, OrchestratorError> {
        start_agent::newest_resident(&self.services, name).await
    }

    /// The final answer to a request, if it has been recorded.
    pub async fn reply(
        &self,
        request: InteractionId,
    ) -> Result<Option<Replied>, OrchestratorError> {
        Ok(self.services.deps.journal.reply(request).await?)
    }

    /// Notifies live agents that one of their peers is no longer defined.
    pub async fn notify_undefined(&self, name: &AgentName) -> Result<(), OrchestratorError> {
        lifecycle::notify_undefined(&self.services, name).await
    }
}
