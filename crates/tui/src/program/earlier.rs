//! Going back to an earlier message: the conversation goes on from before it, in a copy.

use antiphon_core::{Message, Session, SessionId};
use antiphon_project::error::ProjectError;
use antiphon_view::text::one_line;
use uuid::Uuid;

use super::{Conversation, Picked, Program};
use crate::choice::{Choice, ChoiceList};
use crate::document::text_of;

impl Program<'_, '_> {
    /// Lists the earlier prompts of the conversation, the newest first.
    pub(super) async fn list_earlier(&mut self) -> Result<(), ProjectError> {
        let Some(session) = self.whole_session().await? else {
            self.note("there is no earlier message");
            return Ok(());
        };
        let prompts = session.messages.iter().enumerate().filter_map(|(index, message)| {
            let Message::User(user) = &**message else { return None };
            let text = text_of(&user.content);
            Some(Choice {
                label: one_line(&text),
                detail: String::new(),
                value: Picked::Earlier(index, text),
            })
        });
        let mut entries: Vec<_> = prompts.collect();
        entries.reverse();
        self.list = ChoiceList::new("Go on from before", entries);
        if self.list.is_none() {
            self.note("there is no earlier message");
        }
        Ok(())
    }

    /// Continues a copy of the conversation without its messages from `index` on, with `text` in the prompt.
    pub(super) async fn go_back(&mut self, index: usize, text: &str) -> Result<(), ProjectError> {
        let Some(session) = self.whole_session().await? else { return Ok(()) };
        self.forget_watched();
        if index == 0 {
            self.conversation = Conversation::default();
        } else {
            let mut messages = session.messages;
            messages.truncate(index);
            let id = SessionId::parse(&Uuid::new_v4().to_string());
            let id = id.map_err(|error| ProjectError::Failed(error.to_string()))?;
            let copy = Session { id, messages, ..session };
            let imported = self.connection().import(copy, &Uuid::new_v4().to_string()).await;
            let id = match imported {
                Ok(id) => id,
                Err(error) => {
                    self.error(&error.to_string());
                    return Ok(());
                }
            };
            let summary = self.connection().find_session(&id.to_string()).await?;
            // A copy has no model of its own.
            let session = Some((id, summary.last_task));
            self.conversation = Conversation { session, model: None, name: None };
        }
        self.composer.set(text);
        self.note("From before this message, in a copy. The conversation as it was is in /sessions; files stay as they are.");
        Ok(())
    }

    async fn whole_session(&self) -> Result<Option<Session>, ProjectError> {
        let Some((session, _)) = &self.conversation.session else { return Ok(None) };
        let summary = self.connection().find_session(&session.to_string()).await?;
        Ok(Some(self.connection().session(summary).await?))
    }
}
