//! Requests, and the results of reading answers.

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

/// Builds a request message by message.
pub(crate) struct RequestBuilder(Request);

impl RequestBuilder {
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
        let tool = Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: RawJson::empty_object(),
        };
        self.0.tools.push(tool.into());
        self
    }

    pub(crate) fn request(&self) -> Request {
        self.0.clone()
    }
}

/// All pieces of an answer, and its failure.
pub(crate) async fn pieces(
    provider: &ScriptedProvider,
    request: Request,
) -> (Vec<Piece>, Option<ProviderError>) {
    let mut source = provider.open(request);
    let mut sent = Vec::new();
    while let Some(next) = source.next().await {
        match next {
            Ok(piece) => sent.push(piece),
            Err(error) => {
                assert!(source.next().await.is_none(), "an error is the last word");
                return (sent, Some(error));
            }
        }
    }
    (sent, None)
}

/// The events of a message stream, the message, and its failure.
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

/// The complete message.
pub(crate) async fn message(provider: &ScriptedProvider, request: Request) -> AssistantMessage {
    MessageStream::open(provider, request, Cancel::never(), AT)
        .complete()
        .await
        .expect("the answer is whole")
}

/// The text of the complete message.
pub(crate) async fn text(provider: &ScriptedProvider, request: &RequestBuilder) -> String {
    message(provider, request.request()).await.text()
}
