//! Answers from a recording, without a network.
//!
//! The n-th occurrence of a request gets the n-th recorded answer to it, its pieces in order and
//! all at once. Requests are equal when their JSON is, byte for byte, without the times of messages
//! and the environment block of the system prompt, and with keys redacted. A request that was not recorded, or not as often, fails with
//! [`InvalidRequest`](ProviderError::InvalidRequest), which says where it differs from the nearest
//! recorded one. An answer whose reader dropped it, or whose recorder was stopped, ends there as
//! interrupted.

mod difference;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request, without_environment};
use futures_util::stream;
use serde_json::Value;

use crate::recording::{Ending, Exchange, Recording, written};
use difference::Difference;

/// A provider that answers from a recording. Clones share the count of requests.
#[derive(Debug, Clone)]
pub struct Replay {
    store: Arc<AnswerStore>,
}

#[derive(Debug)]
struct AnswerStore {
    /// In the order of recording.
    answers: Vec<Answers>,
    by_request: HashMap<String, usize>,
}

/// The answers to the same request.
#[derive(Debug, Default)]
struct Answers {
    recorded: Vec<Arc<Exchange>>,
    given: AtomicUsize,
}

impl Replay {
    /// Answers from `recording`.
    pub fn new(recording: Recording) -> Self {
        let mut store = AnswerStore { answers: Vec::new(), by_request: HashMap::new() };
        for exchange in recording.into_exchanges() {
            let next = store.answers.len();
            let index = *store.by_request.entry(comparable(&exchange.request)).or_insert(next);
            if index == next {
                store.answers.push(Answers::default());
            }
            if let Some(answers) = store.answers.get_mut(index) {
                answers.recorded.push(Arc::new(exchange));
            }
        }
        Self { store: Arc::new(store) }
    }
}

impl Provider for Replay {
    fn open(&self, request: Request) -> PieceSource {
        let playing = ReplaySource::Unread(Arc::clone(&self.store), Box::new(request));
        Box::pin(stream::unfold(playing, |playing| async move {
            // A network stream yields while it waits.
            tokio::task::consume_budget().await;
            playing.next()
        }))
    }
}

impl AnswerStore {
    /// Takes the next answer to `request`.
    fn answer(&self, request: &Request) -> Result<Arc<Exchange>, ProviderError> {
        let refuse = |message: String| ProviderError::InvalidRequest { message };
        let requested = written(request)
            .map_err(|error| refuse(format!("the request cannot be written as JSON: {error}")))?;
        let index = self.by_request.get(&comparable(&requested));
        let Some(answers) = index.and_then(|index| self.answers.get(*index)) else {
            return Err(refuse(self.unknown(&requested)));
        };
        let given = answers.given.fetch_add(1, Ordering::SeqCst);
        answers.recorded.get(given).cloned().ok_or_else(|| {
            let times = answers.recorded.len();
            refuse(format!("this request was recorded {times} times and is made once more"))
        })
    }

    fn unknown(&self, requested: &str) -> String {
        let recorded = self.answers.iter().filter_map(|answers| answers.recorded.first());
        let recorded: Vec<String> =
            recorded.map(|exchange| comparable(&exchange.request)).collect();
        let requested = comparable(requested);
        match Difference::to_nearest(recorded.iter().map(String::as_str), &requested) {
            Some(difference) => {
                format!("this request was not recorded: it differs from the nearest {difference}")
            }
            None => "this request was not recorded: the recording is empty".to_owned(),
        }
    }
}

/// The JSON of a request without the environment block of its system prompt: another run has another date.
fn comparable(request: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(request) else {
        return request.to_owned();
    };
    let Some(Value::String(prompt)) = fields.get_mut("system_prompt") else {
        return request.to_owned();
    };
    let Cow::Owned(shorter) = without_environment(prompt) else { return request.to_owned() };
    *prompt = shorter;
    Value::Object(fields).to_string()
}

/// An answer that is being replayed.
enum ReplaySource {
    Unread(Arc<AnswerStore>, Box<Request>),
    /// From this piece on.
    Answer(Arc<Exchange>, usize),
    Over,
}

impl ReplaySource {
    fn next(self) -> Option<(Result<Piece, ProviderError>, Self)> {
        let (exchange, at) = match self {
            Self::Unread(store, request) => match store.answer(&request) {
                Ok(exchange) => (exchange, 0),
                Err(error) => return Some((Err(error), Self::Over)),
            },
            Self::Answer(exchange, at) => (exchange, at),
            Self::Over => return None,
        };
        if let Some(piece) = exchange.pieces.get(at) {
            return Some((Ok(piece.clone()), Self::Answer(exchange, at + 1)));
        }
        match &exchange.ending {
            Some(Ending::Done) => Some((Ok(Piece::Done), Self::Over)),
            Some(Ending::Failed(error)) => Some((Err(error.clone()), Self::Over)),
            Some(Ending::Cut | Ending::Dropped) | None => None,
        }
    }
}
