//! The answer to a prompt. In version 1 it ends the turn. In version 2 it says that the journal has the message, and
//! updates of the state say how the turn goes on and ends.

use std::sync::Arc;

use antiphon_core::UserMessage;
use serde_json::{Value, json};

use crate::schema::{Error, PromptResponse, StopReason};
use crate::v2::{self, SessionState};
use crate::version::Version;
use crate::wire::Editor;

/// The answer to a prompt.
pub(crate) struct PromptAnswer {
    editor: Arc<Editor>,
    id: Value,
    session_id: String,
    /// Version 2: the answer was given.
    is_given: bool,
    /// Version 2: the state that was told last.
    state: SessionState,
}

impl PromptAnswer {
    pub(crate) fn new(editor: Arc<Editor>, id: Value, session_id: String) -> Self {
        Self { editor, id, session_id, is_given: false, state: SessionState::Idle }
    }

    /// The journal has a message of the user. The first one is that of the prompt.
    pub(crate) async fn inserted(&mut self, message: &UserMessage) {
        if self.editor.version() == Version::V1 {
            return;
        }
        if !self.is_given {
            self.is_given = true;
            let answer = json!({ "messageId": v2::message_id(message) });
            self.editor.answer(&self.id, Ok(answer)).await;
        }
        self.editor.update_v2(&self.session_id, v2::user_message(message)).await;
    }

    /// The state of the session is this one now.
    pub(crate) async fn state(&mut self, state: SessionState) {
        if self.editor.version() == Version::V2 && self.state != state {
            self.state = state;
            self.editor.update_v2(&self.session_id, state.update()).await;
        }
    }

    /// The turn has ended.
    pub(crate) async fn ended(self, ended: Result<StopReason, Error>) {
        if self.editor.version() == Version::V1 {
            let answer = ended.map(|reason| json!(PromptResponse::new(reason)));
            return self.editor.answer(&self.id, answer).await;
        }
        if !self.is_given {
            let none = || {
                let reason = "the turn ended before the agent read the prompt";
                Error::internal_error().data(json!({ "details": reason }))
            };
            let error = ended.as_ref().err().cloned().unwrap_or_else(none);
            self.editor.answer(&self.id, Err(error)).await;
        }
        // A prompt that began nothing ends nothing.
        if self.state != SessionState::Idle {
            self.editor.update_v2(&self.session_id, v2::ended(&ended)).await;
        }
    }
}
