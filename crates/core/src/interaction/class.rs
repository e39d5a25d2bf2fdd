//! Classification of an interaction, once, on arrival.
//!
//! | class                 | when                                                | wakes the agent |
//! |-----------------------|-----------------------------------------------------|-----------------|
//! | `ActionableMessage`   | a message of a peer or of the user                  | yes             |
//! | `ActionableRequest`   | any other request                                   | yes             |
//! | `Response`            | a response to a request of this agent               | yes             |
//! | `PeerLifecycleAdded`, `…Retired`, `…Unwired` | intent `mob.peer_added`, `_retired`, `_unwired` | no |
//! | `PeerLifecycleKickoffFailed`, `…Cancelled` | intent `mob.kickoff_failed`, `_cancelled` | yes |
//! | `SilentRequest`       | the intent is in the agent's silent set             | no              |
//! | `Ack`                 | an acknowledgement of delivery                      | no              |
//! | `PlainEvent`          | anything from an external source                    | yes             |

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{InboxInteraction, Interaction, InteractionContent, Sender};

/// Class of an interaction, which decides how the orchestrator handles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the table of the module says it all")]
pub enum PeerInputClass {
    ActionableMessage,
    ActionableRequest,
    Response,
    PeerLifecycleAdded,
    PeerLifecycleRetired,
    PeerLifecycleUnwired,
    PeerLifecycleKickoffFailed,
    PeerLifecycleKickoffCancelled,
    SilentRequest,
    Ack,
    PlainEvent,
}

impl PeerInputClass {
    /// Whether the interaction is work for the agent.
    pub fn is_actionable(&self) -> bool {
        match self {
            Self::ActionableMessage
            | Self::ActionableRequest
            | Self::Response
            | Self::PlainEvent
            | Self::PeerLifecycleKickoffFailed
            | Self::PeerLifecycleKickoffCancelled => true,
            Self::PeerLifecycleAdded
            | Self::PeerLifecycleRetired
            | Self::PeerLifecycleUnwired
            | Self::SilentRequest
            | Self::Ack => false,
        }
    }
}

/// Intents by which the orchestrator informs agents about their peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the contract and say it all")]
pub enum LifecycleIntent {
    PeerAdded,
    PeerRetired,
    PeerUnwired,
    KickoffFailed,
    KickoffCancelled,
}

impl LifecycleIntent {
    /// Every lifecycle intent.
    pub const ALL: [Self; 5] = [
        Self::PeerAdded,
        Self::PeerRetired,
        Self::PeerUnwired,
        Self::KickoffFailed,
        Self::KickoffCancelled,
    ];

    /// The intent on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PeerAdded => "mob.peer_added",
            Self::PeerRetired => "mob.peer_retired",
            Self::PeerUnwired => "mob.peer_unwired",
            Self::KickoffFailed => "mob.kickoff_failed",
            Self::KickoffCancelled => "mob.kickoff_cancelled",
        }
    }

    /// The lifecycle intent with this name. Compares the whole text.
    pub fn parse(intent: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == intent)
    }

    fn class(self) -> PeerInputClass {
        match self {
            Self::PeerAdded => PeerInputClass::PeerLifecycleAdded,
            Self::PeerRetired => PeerInputClass::PeerLifecycleRetired,
            Self::PeerUnwired => PeerInputClass::PeerLifecycleUnwired,
            Self::KickoffFailed => PeerInputClass::PeerLifecycleKickoffFailed,
            Self::KickoffCancelled => PeerInputClass::PeerLifecycleKickoffCancelled,
        }
    }
}

/// Intents that the agent reads with its next turn and that never wake it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SilentIntents(BTreeSet<String>);

impl SilentIntents {
    /// Whether `intent` is silent. Compares the whole text.
    pub fn contains(&self, intent: &str) -> bool {
        self.0.contains(intent)
    }
}

impl<T: Into<String>> FromIterator<T> for SilentIntents {
    fn from_iter<I: IntoIterator<Item = T>>(intents: I) -> Self {
        Self(intents.into_iter().map(Into::into).collect())
    }
}

/// A classified interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeerInputCandidate {
    /// The interaction, rendered.
    pub interaction: InboxInteraction,
    /// Class of the interaction.
    pub class: PeerInputClass,
    /// Name of the peer that a lifecycle interaction is about. `None` for other classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle_peer: Option<String>,
}

/// Decides the class of an interaction. Every interaction has one.
///
/// An interaction from an external source is a plain event, even if its content claims more: an external
/// source can neither retire a peer nor forge a response.
pub fn classify(interaction: Interaction, silent: &SilentIntents) -> PeerInputCandidate {
    let class = class_of(&interaction, silent);
    let lifecycle_peer = lifecycle_peer(&interaction, class);
    PeerInputCandidate { interaction: interaction.into(), class, lifecycle_peer }
}

fn class_of(interaction: &Interaction, silent: &SilentIntents) -> PeerInputClass {
    match (&interaction.from, &interaction.content) {
        (_, InteractionContent::Ack { .. }) => PeerInputClass::Ack,
        (Sender::External(_), _) => PeerInputClass::PlainEvent,
        (Sender::User | Sender::Peer(_), content) => match content {
            InteractionContent::Message { .. } => PeerInputClass::ActionableMessage,
            InteractionContent::Response { .. } => PeerInputClass::Response,
            InteractionContent::Ack { .. } => PeerInputClass::Ack,
            InteractionContent::Request { intent, .. } => match LifecycleIntent::parse(intent) {
                Some(lifecycle) => lifecycle.class(),
                None if silent.contains(intent) => PeerInputClass::SilentRequest,
                None => PeerInputClass::ActionableRequest,
            },
        },
    }
}

/// `params.peer`, else the sender.
fn lifecycle_peer(interaction: &Interaction, class: PeerInputClass) -> Option<String> {
    match class {
        PeerInputClass::PeerLifecycleAdded
        | PeerInputClass::PeerLifecycleRetired
        | PeerInputClass::PeerLifecycleUnwired
        | PeerInputClass::PeerLifecycleKickoffFailed
        | PeerInputClass::PeerLifecycleKickoffCancelled => {}
        PeerInputClass::ActionableMessage
        | PeerInputClass::ActionableRequest
        | PeerInputClass::Response
        | PeerInputClass::SilentRequest
        | PeerInputClass::Ack
        | PeerInputClass::PlainEvent => return None,
    }
    let named = match &interaction.content {
        InteractionContent::Request { params, .. } => {
            params.get("peer").and_then(Value::as_str).map(str::trim).filter(|p| !p.is_empty())
        }
        InteractionContent::Message { .. }
        | InteractionContent::Response { .. }
        | InteractionContent::Ack { .. } => None,
    };
    Some(named.map_or_else(|| interaction.from.to_string(), str::to_owned))
}
