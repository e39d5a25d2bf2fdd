//! Requests, and the results of reading answers.

use std::task::Poll;

use antiphon_core::{
    AssistantMessage, Cancel, MessageStream, Piece, PieceSource, Provider, ProviderError, RawJson,
    Request, StreamError, Tool, UserMessage,
};
use antiphon_scripted::{Script, ScriptedProvider};
use chrono::{DateTime, Utc};
use futures_util::{FutureExt, StreamExt};

pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Everything that a reader of pieces gets.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) failure: Option<ProviderError>,
}

impl Read {
    /// An answer without a failure.
    pub(crate) fn whole(pieces: Vec<Piece>) -> Self {
        Self { pieces, failure: None }
    }

    /// An answer that fails at once.
    pub(crate) fn failed(failure: ProviderError) -> Self {
        Self { pieces: Vec::new(), failure: Some(failure) }
    }
}

pub(crate) fn request(text: &str) -> Request {
    Request {
        model: "model".to_owned(),
        messages: vec![UserMessage::text(text, AT).into()].into(),
        ..Request::default()
    }
}

/// A request that offers these tools.
pub(crate) fn offering(tools: &[&str]) -> Request {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
    };
    Request { tools: tools.iter().map(|name| tool(name).into()).collect(), ..request("call") }
}

pub(crate) fn scripted(script: &str) -> ScriptedProvider {
    ScriptedProvider::new(Script::parse(script).expect("the script can be read"))
}

/// Sends a request and reads to the end.
pub(crate) async fn ask(provider: &impl Provider) -> Read {
    read(provider.open(request("ask"))).await
}

/// Reads to the end and beyond: nothing may follow the last piece.
pub(crate) async fn read(mut source: PieceSource) -> Read {
    let mut pieces = Vec::new();
    while let Some(item) = source.next().await {
        match item {
            Ok(piece) => pieces.push(piece),
            Err(error) => {
                assert_eq!(source.next().await, None, "an error is the last word");
                return Read { pieces, failure: Some(error) };
            }
        }
    }
    Read::whole(pieces)
}

/// What is ready right now.
pub(crate) fn poll(source: &mut PieceSource) -> Poll<Option<Result<Piece, ProviderError>>> {
    source.next().now_or_never().map_or(Poll::Pending, Poll::Ready)
}

/// The message, possibly partial, and the error.
pub(crate) async fn message(
    provider: &impl Provider,
    request: Request,
    cancel: Cancel,
) -> (AssistantMessage, Option<StreamError>) {
    let mut stream = MessageStream::open(provider, request, cancel, AT);
    let failure = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (stream.message().expect("it was read"), failure)
}
