//! The protocol between a terminal and its watchers: frames of a letter, a length (four bytes, big
//! endian) and that many bytes. An invalid frame ends the connection.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::pty::size::Size;
use crate::watch::Watching;

/// Version of the protocol. Other versions are refused.
pub(crate) const VERSION: u32 = 1;

/// Longest frame.
const FRAME_BYTES_MAX: usize = 64 * 1024;

/// From a watcher to the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FromWatcher {
    /// The first frame.
    Hello { version: u32, watching: Watching, window: Size },
    /// Typed keys.
    Keys(Vec<u8>),
    /// New size of the window.
    Window(Size),
}

/// From the terminal to a watcher.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToWatcher {
    /// Bytes for the watcher's terminal.
    Draw(Vec<u8>),
    /// The program has ended; how, as a sentence.
    Over(String),
    /// The watcher is refused, with the reason.
    Refused(String),
}

#[derive(Serialize, Deserialize)]
struct Hello {
    version: u32,
    read_only: bool,
    rows: u16,
    columns: u16,
}

#[derive(Serialize, Deserialize)]
struct Window {
    rows: u16,
    columns: u16,
}

impl FromWatcher {
    pub(crate) async fn send(self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Hello { version, watching, window } => {
                let read_only = watching == Watching::ReadOnly;
                let (rows, columns) = (window.rows(), window.columns());
                let hello = Hello { version, read_only, rows, columns };
                write(to, b'h', &serde_json::to_vec(&hello)?).await
            }
            Self::Keys(keys) => write_all(to, b'k', &keys).await,
            Self::Window(size) => {
                let window = Window { rows: size.rows(), columns: size.columns() };
                write(to, b'w', &serde_json::to_vec(&window)?).await
            }
        }
    }

    /// `None` when the watcher is gone.
    pub(crate) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let Some((letter, bytes)) = read(from).await? else { return Ok(None) };
        Ok(Some(match letter {
            b'h' => {
                let hello: Hello = serde_json::from_slice(&bytes)?;
                let watching = if hello.read_only { Watching::ReadOnly } else { Watching::Control };
                let window = Size::new(hello.rows, hello.columns);
                Self::Hello { version: hello.version, watching, window }
            }
            b'k' => Self::Keys(bytes),
            b'w' => {
                let window: Window = serde_json::from_slice(&bytes)?;
                Self::Window(Size::new(window.rows, window.columns))
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

impl ToWatcher {
    pub(crate) async fn send(self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        match self {
            Self::Draw(bytes) => write_all(to, b'd', &bytes).await,
            Self::Over(how) => write(to, b'o', how.as_bytes()).await,
            Self::Refused(reason) => write(to, b'r', reason.as_bytes()).await,
        }
    }

    /// The whole frame of a refusal, to send without waiting.
    pub(crate) fn refusal(reason: &str) -> Vec<u8> {
        frame(b'r', reason.as_bytes())
    }

    /// `None` when the terminal is gone.
    pub(crate) async fn receive(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Self>> {
        let Some((letter, bytes)) = read(from).await? else { return Ok(None) };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(Some(match letter {
            b'd' => Self::Draw(bytes),
            b'o' => Self::Over(text(bytes)),
            b'r' => Self::Refused(text(bytes)),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }))
    }
}

/// Splits long data into several frames.
async fn write_all(to: &mut (impl AsyncWrite + Unpin), letter: u8, bytes: &[u8]) -> io::Result<()> {
    for part in bytes.chunks(FRAME_BYTES_MAX) {
        write(to, letter, part).await?;
    }
    Ok(())
}

async fn write(to: &mut (impl AsyncWrite + Unpin), letter: u8, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&frame(letter, bytes)).await
}

/// Cuts data beyond the longest frame: only texts for people can be so long.
fn frame(letter: u8, bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(FRAME_BYTES_MAX)];
    let length = u32::try_from(bytes.len()).unwrap_or_default();
    let mut frame = Vec::with_capacity(bytes.len() + 5);
    frame.push(letter);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// Reads a letter and its data.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read_exact(&mut head).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [letter, length @ ..] = head;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
    if length > FRAME_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes).await?;
    Ok(Some((letter, bytes)))
}
