//! Interactions in an inbox.

use chrono::{DateTime, Utc};

use super::{
    HandlingMode, Interaction, InteractionContent, PeerInputCandidate, PeerInputClass, RenderClass,
    RenderMetadata, ResponseStatus, Salience, Sender, render,
};
use crate::interaction::render::message_text;
use crate::{InputBlock, InteractionId, MessageQueued, Provenance, UserMessage};

impl MessageQueued {
    /// A message of the user.
    pub fn of_user(id: InteractionId, mode: HandlingMode, message: UserMessage) -> Self {
        Self {
            id,
            mode,
            from: Sender::User,
            content: message.into(),
            class: PeerInputClass::ActionableMessage,
            render_metadata: None,
            quiet: false,
            reply_to: None,
            until: None,
            replaces: None,
            hops: 0,
            payload: None,
            provenance: Provenance::Unknown,
            boot_until: None,
        }
    }

    /// A classified interaction.
    pub fn of(candidate: PeerInputCandidate) -> Self {
        let PeerInputCandidate { interaction, class, lifecycle_peer: _ } = candidate;
        Self {
            id: interaction.id,
            mode: interaction.handling_mode,
            from: interaction.from,
            content: interaction.content,
            class,
            render_metadata: interaction.render_metadata,
            quiet: false,
            reply_to: None,
            until: None,
            replaces: None,
            hops: 0,
            payload: None,
            provenance: Provenance::Unknown,
            boot_until: None,
        }
    }

    /// The same message from this provenance.
    #[must_use]
    pub fn from_provenance(self, provenance: Provenance) -> Self {
        Self { provenance, ..self }
    }

    /// Whether a person sent it in the person's own name: not as an event, and not through an agent.
    pub fn is_from_person(&self) -> bool {
        self.from == Sender::User && self.provenance.is_person()
    }

    /// The user message that the model reads: the text first, then the images.
    pub fn user_message(&self, at: DateTime<Utc>) -> UserMessage {
        let text = render(&self.interaction());
        // Providers refuse an empty text block; images alone are a message.
        let has_images = self.content.has_images();
        let mut content = Vec::new();
        if !(text.trim().is_empty() && has_images) {
            content.push(InputBlock::text(text));
        }
        if let InteractionContent::Message { blocks: Some(blocks), .. } = &self.content {
            let images = blocks.iter().filter(|block| matches!(block, InputBlock::Image(_)));
            content.extend(images.cloned());
        }
        UserMessage { content, timestamp: at }
    }

    /// Whether it starts a turn of an idle agent.
    pub fn wakes(&self) -> bool {
        self.class.is_actionable() && !self.quiet
    }

    /// Whether its sender waits for an answer.
    pub fn expects_answer(&self) -> bool {
        match self.class {
            PeerInputClass::ActionableRequest | PeerInputClass::SilentRequest => true,
            PeerInputClass::ActionableMessage
            | PeerInputClass::Response
            | PeerInputClass::PeerLifecycleAdded
            | PeerInputClass::PeerLifecycleRetired
            | PeerInputClass::PeerLifecycleUnwired
            | PeerInputClass::PeerLifecycleKickoffFailed
            | PeerInputClass::PeerLifecycleKickoffCancelled
            | PeerInputClass::Ack
            | PeerInputClass::PlainEvent => false,
        }
    }

    /// Id of the request that this is the final response to.
    pub fn final_answer_to(&self) -> Option<InteractionId> {
        match &self.content {
            InteractionContent::Response { in_reply_to, status, .. }
                if self.class == PeerInputClass::Response && status.is_final() =>
            {
                Some(*in_reply_to)
            }
            InteractionContent::Message { .. }
            | InteractionContent::Request { .. }
            | InteractionContent::Response { .. }
            | InteractionContent::Ack { .. } => None,
        }
    }

    /// Approximate size, in bytes, with payload and images.
    pub fn bytes(&self) -> usize {
        self.content.bytes() + self.payload.as_ref().map_or(0, |payload| payload.as_str().len())
    }

    /// Urgency.
    pub fn salience(&self) -> Salience {
        self.render_metadata.map_or_else(Salience::default, |shown| shown.salience)
    }

    /// Whether a newer one of the same sender replaces it.
    pub fn is_progress(&self) -> bool {
        let progress = |shown: &RenderMetadata| {
            shown.class == RenderClass::OpsProgress && shown.salience == Salience::Background
        };
        self.render_metadata.as_ref().is_some_and(progress)
    }

    fn interaction(&self) -> Interaction {
        Interaction {
            id: self.id,
            from: self.from.clone(),
            content: self.content.clone(),
            handling_mode: self.mode,
            render_metadata: self.render_metadata,
        }
    }
}

impl InteractionContent {
    /// Whether a reader would find nothing in it: a message without text and images.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Message { body, blocks } => {
                let text = message_text(body, blocks.as_deref().unwrap_or_default());
                text.trim().is_empty() && !self.has_images()
            }
            Self::Request { .. } | Self::Response { .. } | Self::Ack { .. } => false,
        }
    }

    fn has_images(&self) -> bool {
        match self {
            Self::Message { blocks, .. } => {
                blocks.iter().flatten().any(|block| matches!(block, InputBlock::Image(_)))
            }
            Self::Request { .. } | Self::Response { .. } | Self::Ack { .. } => false,
        }
    }

    /// Size of its images, in bytes.
    pub fn image_bytes(&self) -> usize {
        match self {
            Self::Message { blocks, .. } => {
                let image = |block: &InputBlock| match block {
                    InputBlock::Text(_) => 0,
                    InputBlock::Image(image) => image.data().len(),
                };
                blocks.iter().flatten().map(image).sum()
            }
            Self::Request { .. } | Self::Response { .. } | Self::Ack { .. } => 0,
        }
    }

    /// Approximate size, in bytes, with images.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message { body, blocks } => {
                let block = |block: &InputBlock| match block {
                    InputBlock::Text(text) => text.text.len(),
                    InputBlock::Image(image) => image.data().len(),
                };
                body.len() + blocks.iter().flatten().map(block).sum::<usize>()
            }
            Self::Request { intent, params } => intent.len() + params.to_string().len(),
            Self::Response { result, .. } => result.to_string().len(),
            Self::Ack { .. } => 0,
        }
    }
}

impl ResponseStatus {
    /// Whether no other response follows.
    pub fn is_final(self) -> bool {
        match self {
            Self::Accepted => false,
            Self::Completed | Self::Failed => true,
        }
    }

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// Text as the body, and everything as blocks when there is more than text.
impl From<UserMessage> for InteractionContent {
    fn from(message: UserMessage) -> Self {
        let text = |block: &InputBlock| match block {
            InputBlock::Text(text) => Some(text.text.clone()),
            InputBlock::Image(_) => None,
        };
        let texts: Vec<String> = message.content.iter().filter_map(text).collect();
        let blocks = (texts.len() < message.content.len()).then_some(message.content);
        Self::Message { body: texts.join("\n"), blocks }
    }
}
