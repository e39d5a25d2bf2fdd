//! Requests to ask with, and what comes of asking.

use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, InputBlock, MessageStream, Piece, Provider,
    ProviderError, RawJson, Request, StopReason, StreamError, StreamEvent, Tool, ToolCallId,
    ToolResultMessage, Usage, UserMessage,
};
use antiphon_scripted::{Script, ScriptedProvider};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;

pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

pub(crate) fn provider(script: &str) -> ScriptedProvider {
    ScriptedProvider::new(Script::parse(script).expect("the script can be read"))
}

/// A request, grown message by message.
pub(crate) struct Asked(Request);

impl Asked {
    pub(crate) fn new() -> Self {
        Self(Request::default())
    }

    pub(crate) fn user(mut self, text: &str) -> Self {
        let message = UserMessage::text(text, AT);
        self.0.messages.push(message.into());
        self
    }

    pub(crate) fn assistant(self, text: &str) -> Self {
        self.answered(AssistantMessage {
            content: vec![AssistantBlock::text(text)],
            stop_reason: StopReason::EndTurn,
            raw_stop_reason: "end_turn".to_owned(),
            usage: Usage::default(),
            model: None,
            timestamp: AT,
        })
    }

    pub(crate) fn answered(mut self, message: AssistantMessage) -> Self {
        self.0.messages.push(message.into());
        self
    }

    pub(crate) fn result(self, text: &str) -> Self {
        self.outcome("call", text, false)
    }

    pub(crate) fn failure(self, text: &str) -> Self {
        self.outcome("call", text, true)
    }

    pub(crate) fn outcome(mut self, id: &str, text: &str, is_error: bool) -> Self {
        let message = ToolResultMessage {
            tool_call_id: ToolCallId::parse(id).expect("an id"),
            tool_name: "tool".to_owned(),
            content: vec![InputBlock::text(text)],
            is_error,
            timestamp: AT,
        };
        self.0.messages.push(message.into());
        self
    }

    pub(crate) fn system(mut self, text: &str) -> Self {
        text.clone_into(&mut self.0.system_prompt);
        self
    }

    pub(crate) fn tool(mut self, name: &str) -> Self {
        self.0.tools.push(Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: RawJson::empty_object(),
        });
        self
    }

    pub(crate) fn request(&self) -> Request {
        self.0.clone()
    }
}

/// Everything the provider says, and how it fails if it does.
pub(crate) async fn pieces(
    provider: &ScriptedProvider,
    request: Request,
) -> (Vec<Piece>, Option<ProviderError>) {
    let mut source = provider.open(request);
    let mut said = Vec::new();
    while let Some(next) = source.next().await {
        match next {
            Ok(piece) => said.push(piece),
            Err(error) => {
                assert!(source.next().await.is_none(), "an error is the last word");
                return (said, Some(error));
            }
        }
    }
    (said, None)
}

/// What a reader of the stream sees, the message they end up with, and how it fails.
pub(crate) async fn read(
    provider: &ScriptedProvider,
    request: Request,
    cancel: Cancel,
) -> (Vec<StreamEvent>, AssistantMessage, Option<StreamError>) {
    let mut stream = MessageStream::open(provider, request, cancel, AT);
    let mut events = Vec::new();
    let failure = loop {
        match stream.next().await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (events, stream.message().expect("it was read"), failure)
}

/// The whole message.
pub(crate) async fn message(provider: &ScriptedProvider, request: Request) -> AssistantMessage {
    MessageStream::open(provider, request, Cancel::never(), AT)
        .complete()
        .await
        .expect("the answer is whole")
}

/// The text of the whole message.
pub(crate) async fn text(provider: &ScriptedProvider, asked: &Asked) -> String {
    message(provider, asked.request()).await.text()
}
