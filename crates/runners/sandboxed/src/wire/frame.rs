//! Frames: four bytes of length, most significant first, and so many bytes of JSON.
//!
//! A frame over [`FRAME_BYTES_MAX`] is neither sent nor read. Memory is taken as bytes arrive, not
//! as a length promises them.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest frame, in bytes: a long conversation with images fits, and twice what providers take.
pub(crate) const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

const LENGTH_BYTES: usize = 4;

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    /// Send less.
    #[error("a frame has {bytes} bytes, more than {FRAME_BYTES_MAX}")]
    TooLong { bytes: usize },
    /// The other side is not what it should be.
    #[error("a frame means nothing: {reason}")]
    Malformed { reason: String },
    /// The other side is gone.
    #[error(transparent)]
    Broken(#[from] io::Error),
}

/// A message as it travels.
pub(crate) fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    encode_within(message, FRAME_BYTES_MAX)
}

fn encode_within<T: Serialize>(message: &T, bytes_max: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)
        .map_err(|error| FrameError::Malformed { reason: error.to_string() })?;
    let bytes = frame.len() - LENGTH_BYTES;
    let length = u32::try_from(bytes).ok().filter(|_| bytes <= bytes_max);
    let length = length.ok_or(FrameError::TooLong { bytes })?;
    frame.splice(..LENGTH_BYTES, length.to_be_bytes());
    Ok(frame)
}

/// The message in the body of a frame.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body)
        .map_err(|error| FrameError::Malformed { reason: error.to_string() })
}

/// The body of the next frame; `None` if the other side is gone, be it in the middle of one.
/// Not cancel safe: a canceled call has consumed part of a frame.
pub(crate) async fn receive(
    from: &mut (impl AsyncRead + Unpin),
) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = [0; LENGTH_BYTES];
    match from.read_exact(&mut length).await {
        Ok(_) => {}
        Err(error) if is_end(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let bytes = bytes(length)?;
    let mut body = Vec::new();
    match from.take(bytes as u64).read_to_end(&mut body).await {
        Ok(read) => Ok((read == bytes).then_some(body)),
        Err(error) if is_end(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The same for who waits with its whole thread.
pub(crate) fn receive_now(mut from: impl Read) -> Result<Option<Vec<u8>>, FrameError> {
    let mut length = [0; LENGTH_BYTES];
    match from.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if is_end(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let bytes = bytes(length)?;
    let mut body = Vec::new();
    let read = from.take(bytes as u64).read_to_end(&mut body)?;
    Ok((read == bytes).then_some(body))
}

/// Sends a message with its whole thread.
pub(crate) fn send_now<T: Serialize>(mut to: impl Write, message: &T) -> Result<(), FrameError> {
    to.write_all(&encode(message)?)?;
    Ok(())
}

fn bytes(length: [u8; LENGTH_BYTES]) -> Result<usize, FrameError> {
    let bytes = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if bytes > FRAME_BYTES_MAX { Err(FrameError::TooLong { bytes }) } else { Ok(bytes) }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was() {
        let frame = encode(&"hello").unwrap();
        assert_eq!(frame, b"\0\0\0\x07\"hello\"");
        let body = receive_now(&frame[..]).unwrap().unwrap();
        assert_eq!(decode::<String>(&body).unwrap(), "hello");
    }

    #[tokio::test]
    async fn a_frame_that_is_cut_off_is_the_end() {
        let frame = encode(&"hello").unwrap();
        for cut in 0..frame.len() {
            assert!(receive_now(&frame[..cut]).unwrap().is_none(), "{cut}");
            assert!(receive(&mut &frame[..cut]).await.unwrap().is_none(), "{cut}");
        }
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_is_refused_before_it_is_read() {
        let endless = [0xff; 64];
        assert!(matches!(receive_now(&endless[..]), Err(FrameError::TooLong { .. })));
        assert!(matches!(receive(&mut &endless[..]).await, Err(FrameError::TooLong { .. })));
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_sent() {
        assert!(encode_within(&"hello", 7).is_ok());
        assert!(matches!(encode_within(&"hello", 6), Err(FrameError::TooLong { bytes: 7 })));
    }
}
