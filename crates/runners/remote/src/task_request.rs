//! The task that the runner creates at a peer.

use std::sync::Arc;

use antiphon_api::CreateTask;
use antiphon_core::port::DispatchPermission;
use antiphon_core::{CallableAgents, Message, ModelRef, TaskCreated, TaskLimits};
use serde::Deserialize;
use serde_json::Value;

/// The runner's part of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerConfig {
    /// Name of the peer; the only configured one when absent.
    #[serde(default)]
    pub(crate) peer: Option<String>,
    /// An agent that is defined at the peer.
    #[serde(default)]
    agent: Option<String>,
    /// A model that the peer knows.
    #[serde(default)]
    model: Option<ModelRef>,
}

impl PeerConfig {
    pub(crate) fn parse(config: &Value) -> Result<Self, String> {
        Self::deserialize(config).map_err(|error| {
            format!("the config of a `loopback` is {{\"peer\"?, \"agent\"?, \"model\"?}}: {error}")
        })
    }
}

/// Limits of the local task that the remote one gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    pub(crate) limits: TaskLimits,
    pub(crate) dispatches: DispatchPermission,
}

/// The remote task for a local one with these messages. An agent that is defined at the peer has its own
/// system prompt and its own model.
pub(crate) fn create_task(
    config: &PeerConfig,
    created: &TaskCreated,
    limits: RunLimits,
    messages: &[Arc<Message>],
) -> Result<CreateTask, String> {
    let Some((Message::User(message), history)) =
        messages.split_last().map(|(last, before)| (&**last, before))
    else {
        return Err("the last message is not the user's: there is no question to send".to_owned());
    };
    let is_ours = config.agent.is_none();
    let agents = match (&created.agents, limits.dispatches) {
        (_, DispatchPermission::Denied) => Some(Vec::new()),
        (CallableAgents::Any, DispatchPermission::Allowed) => None,
        (CallableAgents::Only(names), DispatchPermission::Allowed) => Some(names.clone()),
    };
    let task = CreateTask::message(message)
        .map_err(|error| format!("the message cannot be written as JSON: {error}"))?;
    Ok(CreateTask {
        agent: config.agent.clone(),
        model: config.model.clone().or(created.model.clone().filter(|_| is_ours)),
        history: history.to_vec(),
        system_prompt: is_ours.then(|| created.system_prompt.clone()),
        tools: created.tools.clone(),
        agents,
        limits: limits.limits,
        output_schema: created.output_schema.clone(),
        followed: true,
        ..task
    })
}
