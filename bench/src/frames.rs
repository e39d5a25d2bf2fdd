//! Server-sent events as raw bytes. Nothing is parsed: the client must not dominate the
//! measurement.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use memchr::memmem;

use crate::Error;

/// Longest event, in bytes. A longer one is an error.
const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A stream of events.
#[derive(Debug)]
pub struct Frames {
    body: Incoming,
    read: BytesMut,
}

impl Frames {
    /// The events in a response body.
    pub fn new(body: Incoming) -> Self {
        Self { body, read: BytesMut::new() }
    }

    /// The next event without its empty line; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(end) = memmem::find(&self.read, b"\n\n") {
                let mut frame = self.read.split_to(end + 2);
                frame.truncate(end);
                return Ok(Some(frame.freeze()));
            }
            if self.read.len() > EVENT_BYTES_MAX {
                return Err("that is no stream of events".into());
            }
            let Some(frame) = self.body.frame().await.transpose()? else { return Ok(None) };
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }

    /// The value of a field of an event.
    pub fn field<'a>(frame: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let mut lines = frame.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b": "))
    }
}
