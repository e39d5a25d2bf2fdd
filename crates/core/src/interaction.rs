//! Interactions: what arrives at an agent's inbox.
//!
//! An interface builds an [`Interaction`]. [`classify`] decides its [`PeerInputClass`] once, on
//! arrival; all later code uses the class. [`render()`] turns it into the text a model
//! reads, with its sender, as data and never as the user's own words.
//!
//! | file              | subject                                                        |
//! |-------------------|----------------------------------------------------------------|
//! | `arrival`         | interactions in an inbox                                       |
//! | `class`           | classes of interactions                                        |
//! | `render`          | the text a model reads                                         |
//! | `provenance`      | where an interaction or a task came from                       |
//! | `control_request` | requests that users write into files, and their commands       |
//! | `order`           | what a control request asks for, and its result                |

mod arrival;
mod class;
pub(crate) mod control_request;
mod order;
mod provenance;
mod render;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub use class::{LifecycleIntent, PeerInputCandidate, PeerInputClass, SilentIntents, classify};
pub use order::{Order, OrderError, OrderResult, OrderStatus, Wait};
pub use provenance::Provenance;
pub use render::{external_event_text, render};

use crate::conversation::message::{self, BlockWire};
use crate::{AgentName, InputBlock, InteractionId, NameError, SourceName};

/// A message, request, response or event that arrives at an agent's inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// Id of the interaction. A response names it.
    pub id: InteractionId,
    /// Sender.
    pub from: Sender,
    /// Content.
    pub content: InteractionContent,
    /// When it may reach the model.
    #[serde(default)]
    pub handling_mode: HandlingMode,
    /// How to show it and how urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_metadata: Option<RenderMetadata>,
}

/// An interaction in the inbox, with the text that a model reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InboxInteraction {
    /// Id of the interaction.
    pub id: InteractionId,
    /// Sender.
    pub from: Sender,
    /// Content.
    pub content: InteractionContent,
    /// Text that a model reads.
    pub rendered_text: String,
    /// When it may reach the model.
    pub handling_mode: HandlingMode,
    /// How to show it and how urgent it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_metadata: Option<RenderMetadata>,
}

impl From<Interaction> for InboxInteraction {
    fn from(interaction: Interaction) -> Self {
        Self {
            rendered_text: render(&interaction),
            id: interaction.id,
            from: interaction.from,
            content: interaction.content,
            handling_mode: interaction.handling_mode,
            render_metadata: interaction.render_metadata,
        }
    }
}

/// Sender of an interaction. One string in JSON: `user`, `event:SOURCE`, or an agent's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The owner of the agent.
    User,
    /// Another agent of this orchestrator.
    Peer(AgentName),
    /// An external source, which is not trusted.
    External(SourceName),
}

impl Sender {
    /// The agent of this name. A text that is not a valid name becomes an external source.
    pub fn agent(name: &str) -> Self {
        AgentName::parse(name).map_or_else(|_| Self::External(SourceName::nameless()), Self::Peer)
    }

    /// Reads the string form.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        match text.strip_prefix("event:") {
            Some(source) => SourceName::parse(source).map(Self::External),
            None if text == "user" => Ok(Self::User),
            None => AgentName::parse(text).map(Self::Peer),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Peer(name) => name.fmt(f),
            Self::External(source) => write!(f, "event:{source}"),
        }
    }
}

impl Serialize for Sender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// Whether an interaction wakes an idle agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wake {
    /// It does if its kind wakes agents.
    #[default]
    Yes,
    /// It is read together with the next interaction that wakes the agent.
    No,
}

/// Content of an interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InteractionContent {
    /// A message to read.
    Message {
        /// Text of the message; may be empty when there are blocks.
        body: String,
        /// Texts and images. A text that repeats the body is read once. Absent: the body only.
        #[serde(default, with = "peer_blocks", skip_serializing_if = "peer_blocks::are_absent")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<crate::schema::PeerBlock>>"))]
        blocks: Option<Vec<InputBlock>>,
    },
    /// A request that the receiver answers.
    Request {
        /// Intent: what the sender wants.
        intent: String,
        /// Parameters. Absent: `null`.
        #[serde(default)]
        params: Value,
    },
    /// A response to a request.
    Response {
        /// Id of the request.
        in_reply_to: InteractionId,
        /// Status of the request.
        status: ResponseStatus,
        /// The result. Absent: `null`.
        #[serde(default)]
        result: Value,
    },
    /// An acknowledgement of delivery. It is dropped on arrival.
    Ack {
        /// Id of the acknowledged interaction.
        in_reply_to: InteractionId,
    },
}

/// Status of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// Accepted; another response follows.
    Accepted,
    /// Completed successfully.
    Completed,
    /// Failed.
    Failed,
}

/// When an interaction may reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HandlingMode {
    /// At the start of the next turn.
    #[default]
    Queue,
    /// Within the current turn, after the current step. For an idle agent
    /// the same as `queue`.
    Steer,
}

/// How to show an interaction and how urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderMetadata {
    /// What the interaction is to the reader.
    pub class: RenderClass,
    /// Orders the queue: the highest salience first.
    pub salience: Salience,
}

impl RenderMetadata {
    /// Progress of running work: a newer one of the same sender replaces it until it is read.
    pub const PROGRESS: Self =
        Self { class: RenderClass::OpsProgress, salience: Salience::Background };

    /// Of this class, with the usual salience.
    pub fn usual(class: RenderClass) -> Self {
        Self { class, salience: Salience::default() }
    }
}

/// What an interaction is to the reader.
///
/// | class                | written for                                                                |
/// |----------------------|----------------------------------------------------------------------------|
/// | `user_prompt`        | a message of the user                                                      |
/// | `peer_message`, `peer_request`, `peer_response` | what another agent sends                       |
/// | `external_event`     | an event of a source outside                                               |
/// | `flow_step`          | a message of a task to a task below it: the next step of its flow               |
/// | `continuation`       | the report of a detached task, with which its parent continues             |
/// | `system_notice`      | a notice of the orchestrator about another agent: started, ended            |
/// | `tool_scope_notice`  | a notice of the orchestrator about what tools reach: an agent is no longer defined |
/// | `ops_progress`       | progress of running work; a newer one replaces it                          |
///
/// Absent: the class follows from the kind of the interaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the contract and say it all")]
pub enum RenderClass {
    UserPrompt,
    PeerMessage,
    PeerRequest,
    PeerResponse,
    ExternalEvent,
    FlowStep,
    Continuation,
    SystemNotice,
    ToolScopeNotice,
    OpsProgress,
}

/// Urgency of an interaction. Ordered: `urgent` is the highest.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the contract and say it all")]
pub enum Salience {
    Background,
    #[default]
    Normal,
    Important,
    Urgent,
}

/// Peers write `media_type` where a session file has `mime_type`.
mod peer_blocks {
    use super::{BlockWire, Deserialize, Deserializer, InputBlock, Serialize, Serializer, de};

    /// Only blocks that a peer may send: the raw JSON of a [`BlockWire`] cannot be read through
    /// the buffer of a tagged enum.
    #[derive(Deserialize)]
    struct PeerBlock {
        #[serde(rename = "type")]
        kind: String,
        text: Option<String>,
        data: Option<String>,
        #[serde(alias = "mime_type")]
        media_type: Option<String>,
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn are_absent(blocks: &Option<Vec<InputBlock>>) -> bool {
        blocks.as_ref().is_none_or(Vec::is_empty)
    }

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        blocks: &Option<Vec<InputBlock>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let wire = blocks.as_ref().map(|blocks| {
            blocks.iter().map(|b| BlockWire::from(b.clone()).for_peers()).collect::<Vec<_>>()
        });
        wire.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<InputBlock>>, D::Error> {
        let wire = Option::<Vec<PeerBlock>>::deserialize(deserializer)?;
        let read = |block: PeerBlock| {
            BlockWire::of_peer(block.kind, block.text, block.data, block.media_type)
        };
        wire.map(|blocks| {
            super::message::input_blocks(blocks.into_iter().map(read).collect(), "user")
        })
        .transpose()
        .map_err(de::Error::custom)
    }
}
