//! What is asked of a peer, in the words of its door.

use std::sync::Arc;

use antiphon_core::port::DispatchPermission;
use antiphon_core::{Message, ModelRef, RawJson, TaskCreated, TaskLimits, UserMessage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The runner's own part of an executor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Who works on it.
    pub(crate) peer: String,
    /// An agent that is defined there.
    #[serde(default)]
    agent: Option<String>,
    /// A model that is known there.
    #[serde(default)]
    model: Option<ModelRef>,
}

impl Config {
    pub(crate) fn parse(config: &Value) -> Result<Self, String> {
        Self::deserialize(config).map_err(|error| {
            format!("the config of a `loopback` is {{\"peer\", \"agent\"?, \"model\"?}}: {error}")
        })
    }
}

/// How far a task may go there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) limits: TaskLimits,
    pub(crate) dispatches: DispatchPermission,
}

/// A task to be begun there.
#[derive(Debug, Serialize)]
pub(crate) struct TaskRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a ModelRef>,
    message: &'a UserMessage,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    history: &'a [Arc<Message>],
    #[serde(skip_serializing_if = "Option::is_none")]
    system_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agents: Option<&'a [String]>,
    #[serde(skip_serializing_if = "TaskLimits::is_none")]
    limits: TaskLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a RawJson>,
}

impl<'a> TaskRequest<'a> {
    /// A task of ours; an agent that is defined there brings its own scene and its own model.
    pub(crate) fn new(
        config: &'a Config,
        created: &'a TaskCreated,
        room: Room,
        said: &'a [Arc<Message>],
    ) -> Result<Self, String> {
        let Some((Message::User(message), history)) =
            said.split_last().map(|(last, before)| (&**last, before))
        else {
            return Err("the last thing that was said is no question".to_owned());
        };
        let own = config.agent.is_none();
        let agents = match (&created.agents, room.dispatches) {
            (_, DispatchPermission::Denied) => Some(&[] as &[_]),
            (antiphon_core::CallableAgents::Any, DispatchPermission::Allowed) => None,
            (antiphon_core::CallableAgents::Only(names), DispatchPermission::Allowed) => {
                Some(names.as_slice())
            }
        };
        Ok(Self {
            agent: config.agent.as_deref(),
            model: config.model.as_ref().or(created.model.as_ref().filter(|_| own)),
            message,
            history,
            system_prompt: own.then_some(created.system_prompt.as_str()),
            tools: created.tools.as_deref(),
            agents,
            limits: room.limits,
            output_schema: created.output_schema.as_ref(),
        })
    }
}

/// What is answered to a task that was begun.
#[derive(Debug, Deserialize)]
pub(crate) struct Begun {
    pub(crate) task_id: antiphon_core::TaskId,
}
