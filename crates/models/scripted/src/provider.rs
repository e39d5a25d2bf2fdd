//! The provider that plays a script. A request without a matching reply is an
//! [`InvalidRequest`](ProviderError::InvalidRequest) that describes it.

use std::sync::Arc;

use antiphon_core::{PieceSource, Provider, ProviderError, Request};
use futures_util::{StreamExt, stream};

use crate::answer_builder::build_answer;
use crate::attempts::Attempts;
use crate::playback::Playback;
use crate::request_facts::RequestFacts;
use crate::script::Script;

/// A model that answers from a script. Clones share the count of attempts.
#[derive(Debug, Clone)]
pub struct ScriptedProvider {
    state: Arc<ScriptState>,
}

#[derive(Debug)]
struct ScriptState {
    script: Script,
    attempts: Attempts,
}

impl ScriptedProvider {
    /// Answers from `script`.
    pub fn new(script: Script) -> Self {
        Self { state: Arc::new(ScriptState { script, attempts: Attempts::default() }) }
    }
}

impl Provider for ScriptedProvider {
    fn open(&self, request: Request) -> PieceSource {
        let state = Arc::clone(&self.state);
        // Inside of the future: an answer that is never polled is not an attempt.
        let playback = async move { state.answer(&request).unwrap_or_else(Playback::failed) };
        Box::pin(stream::once(playback).flat_map(Playback::into_stream))
    }
}

impl ScriptState {
    fn answer(&self, request: &Request) -> Result<Playback, ProviderError> {
        let attempt = if self.script.asks_attempt() {
            let counted = self.attempts.count(request);
            Some(counted.map_err(|error| ProviderError::InvalidRequest {
                message: format!("the request cannot be written as JSON: {error}"),
            })?)
        } else {
            None
        };
        build_answer(&self.script, &RequestFacts::of(request, attempt))
    }
}
