//! Counts the open requests of each API key: from their head to the end of the response, so that event streams,
//! streamed completions and waiting requests count for as long as they are open.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use antiphon_core::ErrorCode;
use antiphon_keys::KeyId;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::api_error::ApiError;

/// Counts the open requests of each key. Holds only keys that have one.
#[derive(Debug, Clone)]
pub(crate) struct OpenRequests {
    per_key_max: usize,
    counts: Arc<Mutex<HashMap<KeyId, usize>>>,
}

/// One open request. It is no longer counted when this is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    id: KeyId,
    counts: Arc<Mutex<HashMap<KeyId, usize>>>,
}

impl OpenRequests {
    pub(crate) fn new(per_key_max: usize) -> Self {
        Self { per_key_max, counts: Arc::default() }
    }

    /// Counts one more request of a key. Fails with 429 at the limit.
    pub(crate) fn open(&self, id: KeyId) -> Result<OpenRequest, ApiError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.get(&id).copied().unwrap_or_default();
        if count >= self.per_key_max {
            let message = format!(
                "this key has {count} open requests and streams, the most that one key may have: close one, \
                 or retry after `retry-after` seconds"
            );
            return Err(ApiError::new(ErrorCode::RateLimitExceeded, message));
        }
        counts.insert(id, count + 1);
        Ok(OpenRequest { id, counts: Arc::clone(&self.counts) })
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&self.id) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(counts.remove(&self.id)),
        }
    }
}

impl OpenRequest {
    /// Counts the request until the body of its response has ended. A body that is complete already does not
    /// keep it open.
    pub(crate) fn until_sent(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(OpenBody { body, _request: self }))
    }
}

/// The body of the response to an open request.
struct OpenBody {
    body: Body,
    _request: OpenRequest,
}

impl HttpBody for OpenBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
