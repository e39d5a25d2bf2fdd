//! Something for an agent, and what became of it.

use antiphon_core::{
    AgentDefinition, AgentName, HandlingMode, InteractionContent, InteractionId, LifecycleIntent,
    RawJson, RenderMetadata, Sender, TaskId,
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::inbox::quotas::{INBOX_MAX, INBOX_OF_SENDER_MAX};
use crate::task::output;

/// Longest interaction, in bytes of JSON.
pub const INTERACTION_BYTES_MAX: usize = 256 * 1024;

/// Longest payload of an event, in bytes of JSON.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Longest key of a sender, in bytes.
pub const SENDER_KEY_BYTES_MAX: usize = 200;

/// Longest intent of a request, in bytes.
pub const INTENT_BYTES_MAX: usize = 128;

/// Something for an agent, as a door hands it over.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// For whom.
    pub to: AgentName,
    /// From whom.
    pub from: Sender,
    /// What it says.
    pub content: InteractionContent,
    /// When it may reach the model.
    pub mode: HandlingMode,
    /// How it is shown and how urgent it is.
    pub render_metadata: Option<RenderMetadata>,
    /// Whether it wakes an agent that does nothing.
    pub wake: Wake,
    /// When an answer comes too late.
    pub until: Option<DateTime<Utc>>,
    /// The sender's own name for it. The same again is the same interaction.
    pub key: Option<String>,
    /// What comes with an event from outside: kept, and not for the model to read.
    pub payload: Option<RawJson>,
}

/// Whether something wakes an agent that does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wake {
    /// If it is of a kind that does.
    #[default]
    Yes,
    /// It is read with whatever wakes the agent next.
    No,
}

impl Arrival {
    /// A message with nothing special about it.
    pub fn message(to: AgentName, from: Sender, body: impl Into<String>) -> Self {
        let content = InteractionContent::Message { body: body.into(), blocks: None };
        Self {
            to,
            from,
            content,
            mode: HandlingMode::Queue,
            render_metadata: None,
            wake: Wake::Yes,
            until: None,
            key: None,
            payload: None,
        }
    }
}

/// What became of something that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "receipt", rename_all = "snake_case")]
pub enum Receipt {
    /// It is in the inbox.
    Accepted {
        /// What it is called.
        id: InteractionId,
        /// The task that reads it.
        task_id: TaskId,
    },
    /// It was in the inbox before.
    Deduplicated {
        /// What it is called.
        id: InteractionId,
        /// The task that reads it, or did.
        task_id: TaskId,
    },
    /// It stops here, as it should.
    Filtered,
    /// It is not in the inbox.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Rejected(Rejection),
}

/// Why something was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Rejection {
    /// Look at the list of agents.
    #[error("there is no agent `{agent}`{}", others(.known))]
    UnknownAgent {
        /// Who was asked for.
        agent: String,
        /// Who there is.
        known: Vec<String>,
    },
    /// A person has to start it.
    #[error("`{agent}` is not started, and only a person may start it")]
    NotStarted {
        /// Who.
        agent: String,
    },
    /// Start it again.
    #[error("`{agent}` was stopped: start it again (`antiphon agents start`)")]
    Stopped {
        /// Who.
        agent: String,
    },
    /// See what is in the way of its being started.
    #[error("`{agent}` cannot be started: {why}")]
    CannotStart {
        /// Who.
        agent: String,
        /// Why.
        why: String,
    },
    /// Send it again when it has read some of them.
    #[error("{INBOX_MAX} interactions wait for `{agent}`: send this one again later")]
    Full {
        /// Whose inbox.
        agent: String,
    },
    /// Send it again when it has read some of them.
    #[error("{INBOX_OF_SENDER_MAX} interactions of {from} wait for `{agent}`: send this one later")]
    SenderFull {
        /// Whose inbox.
        agent: String,
        /// Whose interactions.
        from: Sender,
    },
    /// Say less, or say where it is.
    #[error("an interaction may have {INTERACTION_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// How many it has.
        bytes: usize,
    },
    /// Say something that makes sense.
    #[error("{why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
}

impl Rejection {
    /// Whether the same may be accepted later.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Full { .. } | Self::SenderFull { .. } => true,
            Self::UnknownAgent { .. }
            | Self::NotStarted { .. }
            | Self::Stopped { .. }
            | Self::CannotStart { .. }
            | Self::TooLong { .. }
            | Self::Invalid { .. } => false,
        }
    }
}

fn others(known: &[String]) -> String {
    if known.is_empty() {
        "; none is defined here".to_owned()
    } else {
        format!(", only these: {}", known.join(", "))
    }
}

/// What no door may hand over.
pub(crate) fn refused_at_door(arrival: &Arrival) -> Option<String> {
    let key = arrival.key.as_deref().unwrap_or("-");
    if key.is_empty() || key.len() > SENDER_KEY_BYTES_MAX {
        return Some(format!("a key has 1 to {SENDER_KEY_BYTES_MAX} bytes"));
    }
    if arrival.payload.is_some() && !matches!(arrival.from, Sender::External(_)) {
        return Some("only an event from outside has a payload".to_owned());
    }
    match &arrival.content {
        InteractionContent::Message { .. } | InteractionContent::Ack { .. } => None,
        InteractionContent::Request { intent, .. } => LifecycleIntent::parse(intent)
            .map(|_| format!("`{intent}` is for the orchestrator to say, about agents it knows")),
        InteractionContent::Response { .. } => {
            Some("a response comes from whoever was asked, by the tools it has for that".to_owned())
        }
    }
}

/// Whether it makes sense.
pub(crate) fn check(
    content: &InteractionContent,
    payload: Option<&RawJson>,
    definition: &AgentDefinition,
) -> Result<(), Rejection> {
    let invalid = |why: String| Err(Rejection::Invalid { why });
    match content {
        InteractionContent::Message { body, blocks } => {
            let nothing = body.trim().is_empty() && blocks.as_ref().is_none_or(Vec::is_empty);
            // That an event happened is worth a word even if there are none in it.
            if nothing && payload.is_none() {
                return invalid("there is nothing in it: say something".to_owned());
            }
        }
        InteractionContent::Request { intent, params } => {
            if intent.trim().is_empty() || intent.len() > INTENT_BYTES_MAX {
                return invalid(format!("an intent has 1 to {INTENT_BYTES_MAX} bytes"));
            }
            if let Some(schema) = definition.intents.get(intent)
                && let Err(why) = output::check(Some(schema), params.clone())
            {
                return invalid(format!("the params of `{intent}` do not fit: {why}"));
            }
        }
        InteractionContent::Response { .. } | InteractionContent::Ack { .. } => {}
    }
    let bytes = content.bytes();
    if bytes > INTERACTION_BYTES_MAX {
        return Err(Rejection::TooLong { bytes });
    }
    // What would be read back as none must not be accepted as one.
    if payload.is_some_and(|payload| payload.as_str() == "null") {
        return invalid("there is nothing in it: a payload is not `null`".to_owned());
    }
    let bytes = payload.map_or(0, |payload| payload.as_str().len());
    if bytes > PAYLOAD_BYTES_MAX {
        return invalid(format!(
            "a payload may have {PAYLOAD_BYTES_MAX} bytes, this one has {bytes}"
        ));
    }
    Ok(())
}
