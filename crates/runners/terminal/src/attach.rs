//! Watching a terminal from another one. Whatever happens, the terminal that somebody sits at is left
//! as it was.
//!
//! | what ends it               | what is left                         |
//! |----------------------------|--------------------------------------|
//! | the detach key             | the program runs on                  |
//! | a signal, a hang-up        | the program runs on                  |
//! | the program ends           | nothing, and how it ended is told    |

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

use crate::door::Watching;
use crate::place::connect;
use crate::wire::{FromWatcher, ToWatcher, VERSION};

/// Who watches what, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The terminal's: see [`socket_path`](crate::socket_path).
    pub socket: PathBuf,
    /// Where somebody sits: `/dev/tty`.
    pub tty: PathBuf,
    /// How they watch.
    pub watching: Watching,
    /// What they press to leave.
    pub detach: DetachKey,
}

/// How somebody left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Left {
    /// They pressed the key. The program runs on.
    Detached,
    /// A signal came, or their terminal is gone. The program runs on.
    Interrupted,
    /// The program has ended.
    Over {
        /// How, as a sentence.
        how: String,
    },
    /// Whoever kept the terminal is gone, and the program with them.
    Gone,
}

/// Why somebody cannot watch.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// Wait until it runs.
    #[error("no terminal is there to attach to: {0}")]
    NoTerminal(#[source] io::Error),
    /// Leave it alone.
    #[error("the terminal belongs to somebody else")]
    NotOurs,
    /// Do as it says.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
    /// Come back with a terminal.
    #[error("this is not a terminal to attach from: {0}")]
    NoTty(#[source] io::Error),
}

/// Shows a terminal and passes on what is typed, until somebody leaves or the program ends.
pub async fn attach(attachment: Attachment) -> Result<Left, AttachError> {
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
) -> Result<Left, AttachError> {
    let (hears, mut says) = socket.into_split();
    let window = tty.size().map_err(AttachError::NoTty)?;
    let signals = Signals::catch().map_err(AttachError::NoTty)?;
    let hello = FromWatcher::Hello { version: VERSION, watching: attachment.watching, window };
    // Who is turned away finds out why when they listen.
    let _ = hello.send(&mut says).await;
    tokio::select! {
        shown = show(hears, tty) => shown,
        pressed = press(says, tty, attachment, signals) => Ok(pressed),
    }
}

/// What the terminal shows.
async fn show(mut hears: OwnedReadHalf, tty: &Tty) -> Result<Left, AttachError> {
    loop {
        match ToWatcher::receive(&mut hears).await {
            Ok(Some(ToWatcher::Draw(bytes))) => {
                if tty.write(&bytes).await.is_err() {
                    return Ok(Left::Interrupted);
                }
            }
            Ok(Some(ToWatcher::Over(how))) => return Ok(Left::Over { how }),
            Ok(Some(ToWatcher::Refused(reason))) => return Err(AttachError::Refused { reason }),
            Ok(None) | Err(_) => return Ok(Left::Gone),
        }
    }
}

/// What somebody types.
async fn press(
    mut says: OwnedWriteHalf,
    tty: &Tty,
    attachment: &Attachment,
    mut signals: Signals,
) -> Left {
    loop {
        let said = tokio::select! {
            () = ended(&mut signals.ends) => return Left::Interrupted,
            _ = signals.window.recv() => tty.size().map(FromWatcher::Window),
            keys = tty.read() => keys.map(FromWatcher::Keys),
        };
        let (said, leaves) = match said {
            Ok(FromWatcher::Keys(mut keys)) => {
                let leaves = attachment.leaves_at(&keys);
                keys.truncate(leaves.unwrap_or(keys.len()));
                (FromWatcher::Keys(keys), leaves.is_some())
            }
            Ok(other) => (other, false),
            Err(_) => return Left::Interrupted,
        };
        // If it is gone, the other half knows how.
        let told = said.send(&mut says).await;
        if leaves {
            return Left::Detached;
        }
        if told.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Attachment {
    /// Where in what was typed somebody leaves.
    fn leaves_at(&self, keys: &[u8]) -> Option<usize> {
        let interrupt = 0x03;
        keys.iter().position(|key| match self.watching {
            Watching::Control => *key == self.detach.byte(),
            // Who cannot type has no other use for it.
            Watching::ReadOnly => *key == self.detach.byte() || *key == interrupt,
        })
    }
}

/// What tells us to leave, and that the window has another size.
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
