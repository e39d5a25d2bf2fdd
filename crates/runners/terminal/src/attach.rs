//! Watching a terminal from another one. At the end the user's terminal is restored, in every case.
//!
//! | end                        | state of the program                 |
//! |----------------------------|--------------------------------------|
//! | the detach key             | it continues                         |
//! | a signal, a hang-up        | it continues                         |
//! | the program ends           | ended; how it ended is reported      |

mod detach_key;
mod tty;

use std::io;
use std::path::PathBuf;

use rustix::process::getuid;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use detach_key::{DetachKey, DetachKeyError};
use tty::Tty;

use crate::task::folder::connect;
use crate::watch::Watching;
use crate::watch::wire::{FromWatcher, ToWatcher, VERSION};

/// What to watch, from which terminal, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Socket of the watched terminal: see [`socket_path`](crate::socket_path).
    pub socket: PathBuf,
    /// The terminal of the user: `/dev/tty`.
    pub tty: PathBuf,
    /// Whether the user may type.
    pub watching: Watching,
    /// The key that ends watching.
    pub detach: DetachKey,
}

/// Why watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DetachReason {
    /// The user pressed the detach key. The program continues.
    Detached,
    /// A signal came, or the user's terminal is gone. The program continues.
    Interrupted,
    /// The program has ended.
    Over {
        /// How it ended, as a sentence.
        how: String,
    },
    /// The process that ran the terminal is gone, and the program with it.
    Gone,
}

/// Why a terminal cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The task has no terminal now. Wait until it runs.
    #[error("no terminal is there to attach to: {0}")]
    NoTerminal(#[source] io::Error),
    /// The terminal belongs to another user.
    #[error("the terminal belongs to another user")]
    NotOurs,
    /// The terminal refused the watcher.
    #[error("{reason}")]
    Refused {
        /// The reason, as a sentence.
        reason: String,
    },
    /// There is no terminal to show it in.
    #[error("this is not a terminal to attach from: {0}")]
    NoTty(#[source] io::Error),
}

/// Shows a terminal and forwards typed keys, until the user detaches or the program ends.
pub async fn attach(attachment: Attachment) -> Result<DetachReason, AttachError> {
    let socket = connect(&attachment.socket).await.map_err(AttachError::NoTerminal)?;
    let peer = socket.peer_cred().map_err(AttachError::NoTerminal)?;
    if peer.uid() != getuid().as_raw() {
        return Err(AttachError::NotOurs);
    }
    let tty = Tty::open(&attachment.tty).map_err(AttachError::NoTty)?;
    watch(socket, &tty, &attachment).await
}

async fn watch(
    socket: UnixStream,
    tty: &Tty,
    attachment: &Attachment,
) -> Result<DetachReason, AttachError> {
    let (reader, mut writer) = socket.into_split();
    let window = tty.size().map_err(AttachError::NoTty)?;
    let signals = Signals::catch().map_err(AttachError::NoTty)?;
    let hello = FromWatcher::Hello { version: VERSION, watching: attachment.watching, window };
    // A refused watcher reads the reason later.
    let _ = hello.send(&mut writer).await;
    tokio::select! {
        shown = show(reader, tty) => shown,
        pressed = forward_keys(writer, tty, attachment, signals) => Ok(pressed),
    }
}

/// Shows the screen.
async fn show(mut reader: OwnedReadHalf, tty: &Tty) -> Result<DetachReason, AttachError> {
    loop {
        match ToWatcher::receive(&mut reader).await {
            Ok(Some(ToWatcher::Draw(bytes))) => {
                if tty.write(&bytes).await.is_err() {
                    return Ok(DetachReason::Interrupted);
                }
            }
            Ok(Some(ToWatcher::Over(how))) => return Ok(DetachReason::Over { how }),
            Ok(Some(ToWatcher::Refused(reason))) => return Err(AttachError::Refused { reason }),
            Ok(None) | Err(_) => return Ok(DetachReason::Gone),
        }
    }
}

/// Forwards the typed keys.
async fn forward_keys(
    mut writer: OwnedWriteHalf,
    tty: &Tty,
    attachment: &Attachment,
    mut signals: Signals,
) -> DetachReason {
    loop {
        let frame = tokio::select! {
            () = ended(&mut signals.ends) => return DetachReason::Interrupted,
            _ = signals.window.recv() => tty.size().map(FromWatcher::Window),
            keys = tty.read() => keys.map(FromWatcher::Keys),
        };
        let (frame, leaves) = match frame {
            Ok(FromWatcher::Keys(mut keys)) => {
                let leaves = attachment.detach_at(&keys);
                keys.truncate(leaves.unwrap_or(keys.len()));
                (FromWatcher::Keys(keys), leaves.is_some())
            }
            Ok(other) => (other, false),
            Err(_) => return DetachReason::Interrupted,
        };
        // If the connection is gone, the reading half knows why.
        let sent = frame.send(&mut writer).await;
        if leaves {
            return DetachReason::Detached;
        }
        if sent.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Attachment {
    /// The index of the key that ends watching.
    fn detach_at(&self, keys: &[u8]) -> Option<usize> {
        let interrupt = 0x03;
        keys.iter().position(|key| match self.watching {
            Watching::Control => *key == self.detach.byte(),
            // A read-only watcher has no other use for the interrupt key.
            Watching::ReadOnly => *key == self.detach.byte() || *key == interrupt,
        })
    }
}

/// Signals that end watching, and the signal of a changed window size.
struct Signals {
    ends: [Signal; 3],
    window: Signal,
}

impl Signals {
    fn catch() -> io::Result<Self> {
        let ends = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [first, second, third] = ends.map(signal);
        Ok(Self { ends: [first?, second?, third?], window: signal(SignalKind::window_change())? })
    }
}

async fn ended([first, second, third]: &mut [Signal; 3]) {
    tokio::select! {
        _ = first.recv() => {}
        _ = second.recv() => {}
        _ = third.recv() => {}
    }
}
