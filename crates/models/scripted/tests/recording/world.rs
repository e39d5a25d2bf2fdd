//! Requests, a path for recordings, and the results of reading answers.

use std::fs;
use std::path::PathBuf;

use antiphon_core::{
    AssistantMessage, Cancel, MessageStream, Piece, PieceSource, Provider, ProviderError, Request,
    StreamError, UserMessage,
};
use antiphon_scripted::{Recorder, Recording, Replay, Script, ScriptedProvider};
use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use tempfile::TempDir;

pub(crate) const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// A temporary folder with a path for a recording.
pub(crate) struct RecordingPath {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

impl RecordingPath {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("exchanges.jsonl");
        Self { _folder: folder, path }
    }

    /// A recording with this content.
    pub(crate) fn holding(content: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        fs::write(&place.path, content).expect("it can be written");
        place
    }

    pub(crate) fn recorder<P: Provider>(&self, inner: P) -> Recorder<P> {
        Recorder::append(inner, &self.path).expect("a recorder")
    }

    pub(crate) fn content(&self) -> String {
        fs::read_to_string(&self.path).expect("it can be read")
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.content().lines().map(str::to_owned).collect()
    }

    pub(crate) fn load(&self) -> Recording {
        Recording::load(&self.path).expect("a recording")
    }

    pub(crate) fn replay(&self) -> Replay {
        Replay::new(self.load())
    }
}

/// Everything that a reader of pieces gets.
#[derive(Debug, PartialEq)]
pub(crate) struct Read {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) failure: Option<ProviderError>,
}

pub(crate) fn scripted(script: &str) -> ScriptedProvider {
    ScriptedProvider::new(Script::parse(script).expect("the script can be read"))
}

pub(crate) fn request(text: &str) -> Request {
    Request {
        model: "model".to_owned(),
        messages: vec![UserMessage::text(text, AT).into()].into(),
        ..Request::default()
    }
}

pub(crate) async fn ask(provider: &impl Provider, text: &str) -> Read {
    read(provider.open(request(text))).await
}

pub(crate) async fn read(mut source: PieceSource) -> Read {
    let mut pieces = Vec::new();
    let mut failure = None;
    while let Some(item) = source.next().await {
        match item {
            Ok(piece) => pieces.push(piece),
            Err(error) => {
                assert_eq!(failure, None, "one error is the last word");
                failure = Some(error);
            }
        }
    }
    Read { pieces, failure }
}

/// The message, possibly partial, and the error.
pub(crate) async fn message(
    provider: &impl Provider,
    request: Request,
) -> (AssistantMessage, Option<StreamError>) {
    let mut stream = MessageStream::open(provider, request, Cancel::never(), AT);
    let failure = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (stream.message().expect("it was read"), failure)
}

/// Why a request was refused.
pub(crate) async fn refusal(provider: &impl Provider, request: Request) -> String {
    match read(provider.open(request)).await {
        Read { pieces, failure: Some(ProviderError::InvalidRequest { message }) }
            if pieces.is_empty() =>
        {
            message
        }
        read => unreachable!("it was not refused: {read:?}"),
    }
}
