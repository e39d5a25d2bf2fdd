//! Inboxes of agents: what a client sends, and what is queued.

use std::num::{NonZeroU32, NonZeroUsize};

use antiphon_core::{
    AgentName, HandlingMode, Interaction, InteractionContent, InteractionId, PeerInputClass,
    Position, QueuedMessage, RenderMetadata, Salience, Sender, SourceName, TaskId, render,
};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use crate::task::LISTED_MAX;

/// Longest time an agent has to answer a request, in seconds: seven days.
pub const REQUEST_TIMEOUT_S_MAX: u32 = 7 * 24 * 3600;

/// An interaction for an inbox. Exactly one of `message`, `request` and `content` is present; an event (`from`) may have
/// none of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        rename = "Arrival",
        example = serde_json::json!({ "from": "ci", "message": "The build is red." }),
        example = serde_json::json!({ "request": { "intent": "ask", "params": { "about": "the build" } }, "timeout_s": 60 }),
        example = serde_json::json!({ "content": { "type": "message", "body": "hello" }, "mode": "steer" }),
    )
)]
pub struct SendInteraction {
    /// Source of an external event. When absent, the sender is the user, or the agent that owns the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<SourceName>,
    /// An interaction in the form that agents exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<InteractionContent>,
    /// The message as plain text, in place of `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A request, which the agent answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestBody>,
    /// When the model reads it: `queue` (with the next turn) or `steer` (after the current step).
    #[serde(default)]
    pub mode: HandlingMode,
    /// Urgency: the agent reads more salient interactions first; `normal` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salience: Option<Salience>,
    /// `true` for progress of running work: it replaces progress of the same sender that the agent has not read, and
    /// does not wake an idle agent. Not together with `salience`, `wake` or a request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
    /// `false` to not wake an idle agent; it reads the interaction with its next turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake: Option<bool>,
    /// Time the agent has to answer a request, in seconds; 600 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = REQUEST_TIMEOUT_S_MAX)))]
    pub timeout_s: Option<NonZeroU32>,
}

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Request"))]
pub struct RequestBody {
    /// What the agent is asked to do.
    pub intent: String,
    /// Parameters; they match the agent's JSON Schema of the intent, if it has one.
    #[serde(default)]
    pub params: Value,
}

/// What became of an interaction. Once the client has it, the journal has the interaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "receipt", rename_all = "snake_case")]
pub enum Receipt {
    /// The inbox has it.
    Accepted {
        /// Id of the interaction.
        id: InteractionId,
        /// Id of the task that reads it.
        task_id: TaskId,
    },
    /// The inbox had it before, under the same `Idempotency-Key`.
    Deduplicated {
        /// Id of the interaction.
        id: InteractionId,
        /// Id of the task that reads it, or has read it.
        task_id: TaskId,
    },
    /// It was an acknowledgment, which no inbox stores.
    Filtered,
}

/// Which part of the inboxes to list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ListQuery"))]
pub struct InboxQuery {
    /// Only the inbox of this agent; all inboxes when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Number of interactions, at most; 100 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = LISTED_MAX)))]
    pub limit: Option<NonZeroUsize>,
    /// `next_cursor` of the previous page; the first page when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Position>,
}

/// One page of the queued interactions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Inbox"))]
pub struct InboxPage {
    /// Interactions in order of arrival.
    pub waiting: Vec<QueuedInteraction>,
    /// Number of all queued interactions, also of those beyond `limit`.
    pub total: usize,
    /// `cursor` of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Position>,
}

/// An interaction that is queued in an inbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueuedInteraction {
    /// Name of the agent that owns the inbox.
    pub agent: String,
    /// `true` when the agent is live.
    pub live: bool,
    /// Id of the task that reads it; of an agent that is not live, its last task.
    pub task_id: TaskId,
    /// Position of its arrival in the journal: `cursor` of a page that begins behind it.
    #[serde(default)]
    pub position: Position,
    /// Time of arrival.
    pub at: DateTime<Utc>,
    /// Id of the interaction.
    pub id: InteractionId,
    /// `user`, `event:SOURCE`, or the name of an agent.
    pub from: Sender,
    /// Class that admission assigned.
    pub class: PeerInputClass,
    /// How urgent it is: more salient messages are read first.
    pub salience: Salience,
    /// When the model reads it: the same as `handling_mode`.
    pub mode: HandlingMode,
    /// When the model reads it.
    #[serde(default)]
    pub handling_mode: HandlingMode,
    /// How it is shown and how urgent it is; absent for the defaults of its class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub render_metadata: Option<RenderMetadata>,
    /// `true` when it wakes an idle agent.
    pub wakes: bool,
    /// Deadline of the answer to a request; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
    /// The interaction as it was sent.
    pub content: InteractionContent,
    /// The text that the model reads.
    pub rendered_text: String,
}

impl QueuedInteraction {
    /// An entry of the journal's queue, of this agent.
    pub fn of(agent: &str, live: bool, queued: QueuedMessage) -> Self {
        let QueuedMessage { task_id, position, at, message } = queued;
        Self {
            agent: agent.to_owned(),
            live,
            task_id,
            position,
            at,
            id: message.id,
            class: message.class,
            salience: message.salience(),
            mode: message.mode,
            handling_mode: message.mode,
            render_metadata: message.render_metadata,
            wakes: message.wakes(),
            until: message.until,
            rendered_text: render(&Interaction {
                id: message.id,
                from: message.from.clone(),
                content: message.content.clone(),
                handling_mode: message.mode,
                render_metadata: message.render_metadata,
            }),
            from: message.from,
            content: message.content,
        }
    }
}
