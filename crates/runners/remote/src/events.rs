//! The events of a task there, as they come.

use std::num::NonZeroUsize;
use std::time::Duration;

use antiphon_core::Event;
use reqwest::Response;
use sse_core::{SseDecoder, SseEvent};

use crate::answer::{Failure, lost};

/// Largest event. A peer that sends a larger one is given up.
pub const EVENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How long nothing at all may come: several times as long as between two heartbeats.
const SILENCE_MAX: Duration = Duration::from_secs(60);

const EVENT_LIMIT: NonZeroUsize = NonZeroUsize::new(EVENT_BYTES_MAX).unwrap();

/// The events of a task there.
pub(crate) struct Events {
    response: Response,
    decoder: SseDecoder,
}

impl Events {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, decoder: SseDecoder::with_limit(EVENT_LIMIT) }
    }

    /// What comes next: some events, or none at the end. Cancel safe: what has not come is not
    /// taken.
    pub(crate) async fn next(&mut self) -> Result<Vec<Event>, Failure> {
        loop {
            let chunk = tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await;
            let silent = |_| Failure::Lost("nothing is heard of it any more".to_owned());
            let Some(mut chunk) = chunk.map_err(silent)?.map_err(|error| lost(&error))? else {
                return Ok(Vec::new());
            };
            let mut events = Vec::new();
            while let Some(said) = self.decoder.next(&mut chunk) {
                match said {
                    Ok(SseEvent::Message(message)) => events.push(read(&message.data)?),
                    Ok(SseEvent::Retry(_)) => {}
                    Err(_) => {
                        let reason = format!("an event has more than {EVENT_BYTES_MAX} bytes");
                        return Err(Failure::Refused(reason));
                    }
                }
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

/// An event, or what is wrong with it: a peer of a later version says what we do not know.
fn read(data: &str) -> Result<Event, Failure> {
    serde_json::from_str(data)
        .map_err(|error| Failure::Refused(format!("an event cannot be read: {error}")))
}
