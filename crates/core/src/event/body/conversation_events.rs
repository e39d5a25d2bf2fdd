//! The messages of a task, and their summaries.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::event::defaults::is_false;
use crate::{InteractionId, Message};

event_structs! {
    /// A message joined the conversation.
    MessageAppended {
        /// The message.
        message: Arc<Message>,
        /// Id of the queued message that it was in the inbox. Absent: it was not queued.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<InteractionId>,
        /// Whether it is an answer that broke off and that the model is asked for again: another one
        /// takes its place, and no model reads this one. Absent: `false`.
        #[serde(default, skip_serializing_if = "is_false")]
        superseded: bool,
    }
    /// From here on the model reads a summary in place of the older messages. The journal keeps
    /// them all.
    Compacted {
        /// The summary.
        summary: String,
        /// Index of the first message that the model still reads, counted from 0 over the
        /// conversation.
        kept_from: u64,
    }
}

impl MessageAppended {
    /// A message that was not queued.
    pub fn new(message: impl Into<Arc<Message>>) -> Self {
        Self { message: message.into(), queued: None, superseded: false }
    }

    /// A message that left the inbox.
    pub fn of_queued(message: impl Into<Arc<Message>>, id: InteractionId) -> Self {
        Self { queued: Some(id), ..Self::new(message) }
    }

    /// An answer that broke off and that the model is asked for again.
    pub fn superseded(answer: impl Into<Arc<Message>>) -> Self {
        Self { superseded: true, ..Self::new(answer) }
    }
}
