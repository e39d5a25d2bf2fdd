//! A watcher of a task that records when it saw which event.

use std::time::{Duration, Instant};

use antiphon_bench::{Connection, Error, Frames, Times};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use hyper::Method;
use memchr::memmem;

/// Number of events before the task is busy.
const CALM: usize = 12;

/// The delay of one event in this many is measured.
const SAMPLED: usize = 16;

/// What a watcher saw of a busy task.
pub(crate) struct Observed {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    /// From the decision of an event until it was seen.
    pub(crate) lag: Times,
    pub(crate) first: Instant,
    pub(crate) last: Instant,
}

pub(crate) async fn watch(connection: &mut Connection, path: &str) -> Result<Observed, Error> {
    let response = connection.ask(Method::GET, path, Bytes::new()).await?;
    if !response.status().is_success() {
        return Err(format!("{path}: {}", response.status()).into());
    }
    let mut frames = Frames::new(response.into_body());
    let (mut expected, mut first, mut over) = (0, None, false);
    let (mut bytes, mut lag) = (0, Times::default());
    while let Some(frame) = frames.next().await? {
        let Some(id) = Frames::field(&frame, "id") else { continue };
        expected += 1;
        if id != expected.to_string().as_bytes() {
            return Err(
                format!("{expected} was expected, not {}", String::from_utf8_lossy(id)).into()
            );
        }
        over = memmem::find(&frame, b"\"completed\"").is_some();
        if expected <= CALM {
            continue;
        }
        bytes += frame.len();
        first.get_or_insert_with(Instant::now);
        if expected % SAMPLED == 0
            && let Some(at) = decided_at(&frame)
        {
            lag.push((Utc::now() - at).to_std().unwrap_or(Duration::ZERO));
        }
    }
    if !over {
        return Err(format!("the stream ended early, behind {expected} events").into());
    }
    let first = first.ok_or("the task was never busy")?;
    Ok(Observed { events: expected - CALM, bytes, lag, first, last: Instant::now() })
}

fn decided_at(frame: &[u8]) -> Option<DateTime<Utc>> {
    let at = memmem::find(frame, b"\"at\":\"")? + 6;
    let end = at + memchr::memchr(b'"', frame.get(at..)?)?;
    std::str::from_utf8(frame.get(at..end)?).ok()?.parse().ok()
}
