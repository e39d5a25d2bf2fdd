//! An interaction for an agent, and its receipt.

use antiphon_core::{
    AgentDefinition, AgentName, HandlingMode, IMAGE_BYTES_MAX, InteractionContent, InteractionId,
    LifecycleIntent, Provenance, RawJson, RenderMetadata, Sender, TaskId, Wake,
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::inbox::quotas::{INBOX_MAX, INBOX_OF_SENDER_MAX};
use crate::task::step::output;

/// Longest interaction, in bytes of JSON without its images.
pub const INTERACTION_BYTES_MAX: usize = 256 * 1024;

/// Images of an interaction together, in bytes, at most.
pub const INTERACTION_IMAGE_BYTES_MAX: usize = 2 * IMAGE_BYTES_MAX;

/// Longest payload of an external event, in bytes of JSON.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Longest key of a sender, in bytes.
pub const SENDER_KEY_BYTES_MAX: usize = 200;

/// Longest intent of a request, in bytes.
pub const INTENT_BYTES_MAX: usize = 128;

/// An interaction for an agent, from an interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// Name of the receiving agent.
    pub to: AgentName,
    /// Sender, as authenticated by the interface.
    pub from: Sender,
    /// Message or request. Interfaces must not send responses.
    pub content: InteractionContent,
    /// When the model may read it.
    pub mode: HandlingMode,
    /// How it is shown and how urgent it is.
    pub render_metadata: Option<RenderMetadata>,
    /// Whether it wakes an idle agent.
    pub wake: Wake,
    /// Deadline of the answer; a default applies to requests when absent.
    pub until: Option<DateTime<Utc>>,
    /// The sender's idempotency key. The same key again is the same interaction.
    pub key: Option<String>,
    /// Data of an external event: stored, but not shown to the model.
    pub payload: Option<RawJson>,
    /// Where it came from, as the interface knows it. A sender cannot choose it.
    pub provenance: Provenance,
}

impl Arrival {
    /// A queued message with defaults for everything else, of unknown provenance.
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
            provenance: Provenance::Unknown,
        }
    }
}

/// Receipt for an interaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "receipt", rename_all = "snake_case")]
pub enum Receipt {
    /// It is recorded in the inbox.
    Accepted {
        /// Id of the interaction.
        id: InteractionId,
        /// Id of the task whose inbox has it.
        task_id: TaskId,
    },
    /// It was recorded before, under the same key.
    Deduplicated {
        /// Id of the interaction.
        id: InteractionId,
        /// Id of the task whose inbox has or had it.
        task_id: TaskId,
    },
    /// It is an acknowledgment and needs no inbox.
    Filtered,
    /// It is not recorded.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Rejected(Rejection),
}

/// Why an interaction was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Rejection {
    /// No agent has this name: list the agents.
    #[error("there is no agent `{agent}`{}", others(.known))]
    UnknownAgent {
        /// The name that was addressed.
        agent: String,
        /// Names of all defined agents.
        known: Vec<String>,
    },
    /// The agent is not started, and the sender may not start it.
    #[error("`{agent}` is not started, and only a user may start it")]
    NotStarted {
        /// Name of the agent.
        agent: String,
    },
    /// A user stopped the agent: start it again.
    #[error("`{agent}` was stopped: start it again (`antiphon agents start`)")]
    Stopped {
        /// Name of the agent.
        agent: String,
    },
    /// The agent cannot be started: fix the cause.
    #[error("`{agent}` cannot be started: {why}")]
    CannotStart {
        /// Name of the agent.
        agent: String,
        /// Why not.
        why: String,
    },
    /// The inbox is full: send it again later.
    #[error("{INBOX_MAX} interactions are queued for `{agent}`: send this one again later")]
    Full {
        /// Name of the agent.
        agent: String,
    },
    /// The sender's share of the inbox is full: send it again later.
    #[error(
        "{INBOX_OF_SENDER_MAX} interactions of {from} are queued for `{agent}`: send this one later"
    )]
    SenderFull {
        /// Name of the agent.
        agent: String,
        /// The sender.
        from: Sender,
    },
    /// The interaction is too long: shorten it, or refer to a file.
    #[error("an interaction may have {INTERACTION_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// Its number of bytes.
        bytes: usize,
    },
    /// The interaction is invalid: fix it.
    #[error("{why}")]
    Invalid {
        /// What of it is wrong: `message`, `intent`, `params`, `blocks`, `payload`, `key` or `content`.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl Rejection {
    /// Whether the same interaction may be accepted later.
    pub fn is_temporary(&self) -> bool {
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
        "; no agent is defined here: create one with `antiphon agents new NAME`".to_owned()
    } else {
        format!("; available: {}", known.join(", "))
    }
}

/// Why an interface must not send this, if so.
pub(crate) fn interface_refusal(arrival: &Arrival) -> Option<Rejection> {
    let invalid = |field, why| Some(Rejection::Invalid { field, why });
    let key = arrival.key.as_deref().unwrap_or("-");
    if key.is_empty() || key.len() > SENDER_KEY_BYTES_MAX {
        return invalid("key", format!("a key has 1 to {SENDER_KEY_BYTES_MAX} bytes"));
    }
    if arrival.payload.is_some() && !matches!(arrival.from, Sender::External(_)) {
        return invalid("payload", "only an external event has a payload".to_owned());
    }
    match &arrival.content {
        InteractionContent::Message { .. } | InteractionContent::Ack { .. } => None,
        InteractionContent::Request { intent, .. } => {
            LifecycleIntent::parse(intent).and_then(|_| {
                invalid("intent", format!("`{intent}` is reserved for the orchestrator"))
            })
        }
        InteractionContent::Response { .. } => {
            let why = "a response is sent by the requested agent, with its tools";
            invalid("content", why.to_owned())
        }
    }
}

/// Checks content and payload against the limits and the agent's definition.
pub(crate) fn check(
    from: &Sender,
    content: &InteractionContent,
    payload: Option<&RawJson>,
    definition: &AgentDefinition,
) -> Result<(), Rejection> {
    let invalid = |field, why: String| Err(Rejection::Invalid { field, why });
    match content {
        InteractionContent::Message { .. } => {
            // An external event needs no text: its label says that it happened.
            if content.is_empty() && !matches!(from, Sender::External(_)) {
                return invalid("message", "the message is empty: add a text".to_owned());
            }
        }
        InteractionContent::Request { intent, params } => {
            if intent.trim().is_empty() || intent.len() > INTENT_BYTES_MAX {
                let why = format!("an intent has 1 to {INTENT_BYTES_MAX} bytes");
                return invalid("intent", why);
            }
            if let Some(schema) = definition.intents.get(intent)
                && let Err(why) = output::check(Some(schema), params.clone())
            {
                let why = format!("the params of `{intent}` do not fit their schema: {why}");
                return invalid("params", why);
            }
        }
        InteractionContent::Response { .. } | InteractionContent::Ack { .. } => {}
    }
    let image_bytes = content.image_bytes();
    if image_bytes > INTERACTION_IMAGE_BYTES_MAX {
        let why = format!(
            "the images of an interaction may have {INTERACTION_IMAGE_BYTES_MAX} bytes together, these have \
             {image_bytes}: send them one by one"
        );
        return invalid("blocks", why);
    }
    let bytes = content.bytes() - image_bytes;
    if bytes > INTERACTION_BYTES_MAX {
        return Err(Rejection::TooLong { bytes });
    }
    // Stored as `null` it would be read back as absent.
    if payload.is_some_and(|payload| payload.as_str() == "null") {
        return invalid("payload", "the payload is `null`: omit it".to_owned());
    }
    let bytes = payload.map_or(0, |payload| payload.as_str().len());
    if bytes > PAYLOAD_BYTES_MAX {
        let why = format!("a payload may have {PAYLOAD_BYTES_MAX} bytes, this one has {bytes}");
        return invalid("payload", why);
    }
    Ok(())
}
