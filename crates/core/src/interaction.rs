//! Interactions: what arrives at an agent's inbox.
//!
//! A door builds an [`Interaction`]; [`classify`] looks at it once, at ingress, and everything
//! behind switches on the [`PeerInputClass`] it found. [`render()`] turns it into what a model
//! reads, late and with its provenance, as data and never as the user's own words.

mod arrival;
mod class;
mod render;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

pub use class::{LifecycleIntent, PeerInputCandidate, PeerInputClass, SilentIntents, classify};
pub(crate) use render::is_invisible;
pub use render::{external_event_text, render, visible};

use crate::message::{self, BlockWire};
use crate::{AgentName, InputBlock, InteractionId, NameError, SourceName};

/// Something that arrives at an agent's inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interaction {
    /// Which one. A response names it.
    pub id: InteractionId,
    /// Who sent it.
    pub from: Sender,
    /// What it says.
    pub content: InteractionContent,
    /// When it may reach the model.
    #[serde(default)]
    pub handling_mode: HandlingMode,
    /// How it is shown and how urgent it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_metadata: Option<RenderMetadata>,
}

/// An interaction as it lies in the inbox: with the text a model would read.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InboxInteraction {
    /// Which one.
    pub id: InteractionId,
    /// Who sent it.
    pub from: Sender,
    /// What it says.
    pub content: InteractionContent,
    /// What a model reads of it.
    pub rendered_text: String,
    /// When it may reach the model.
    pub handling_mode: HandlingMode,
    /// How it is shown and how urgent it is.
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

/// Who sent an interaction. One string in JSON: `user`, `event:SOURCE`, or a peer's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The person who owns the agent.
    User,
    /// Another agent, known to the orchestrator.
    Peer(AgentName),
    /// Something outside that nobody vouches for.
    External(SourceName),
}

impl Sender {
    /// The agent of this name. One that has no name is nobody whom anybody vouches for.
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

/// What an interaction says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum InteractionContent {
    /// Something to read.
    Message {
        /// The text.
        body: String,
        /// The same with pictures.
        #[serde(default, with = "peer_blocks", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<crate::schema::PeerBlock>>"))]
        blocks: Option<Vec<InputBlock>>,
    },
    /// Something to do, to be answered.
    Request {
        /// What.
        intent: String,
        /// With what; `null` when absent.
        #[serde(default)]
        params: Value,
    },
    /// An answer.
    Response {
        /// To which request.
        in_reply_to: InteractionId,
        /// How far it got.
        status: ResponseStatus,
        /// What came of it; `null` when absent.
        #[serde(default)]
        result: Value,
    },
    /// Word that something arrived. It stops at ingress.
    Ack {
        /// What arrived.
        in_reply_to: InteractionId,
    },
}

/// How far a request got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResponseStatus {
    /// Taken on; another response follows.
    Accepted,
    /// Done.
    Completed,
    /// Not done.
    Failed,
}

/// When an interaction may reach the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HandlingMode {
    /// With the next turn.
    #[default]
    Queue,
    /// Within this turn, at the next safe point between model and tools. For an idle agent
    /// the same as `queue`.
    Steer,
}

/// How an interaction is shown and how urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RenderMetadata {
    /// What kind of thing it is to the reader.
    pub class: RenderClass,
    /// Orders the queue: the more salient first.
    pub salience: Salience,
}

/// What kind of thing an interaction is to its reader.
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

/// How urgent an interaction is. Ordered: `urgent` is the greatest.
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

    /// Only what a peer may send: raw JSON, which a [`BlockWire`] has, cannot be read through
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
