//! The keyboard of a terminal: what is typed waits in line until the program reads it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{Errno, write};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::time::sleep;

use crate::screen::Screen;

/// Strokes that wait. Who types more waits, and what the terminal answers is dropped.
const STROKES_MAX: usize = 64;

/// Between a message and what ends it: programs take what comes at once for one paste.
const SUBMIT_AFTER: Duration = Duration::from_millis(50);

/// How often a full terminal is tried: the kernel does not always tell when there is room.
const TRY_EVERY: Duration = Duration::from_millis(5);

/// What is typed at a time.
#[derive(Debug)]
pub(crate) enum Stroke {
    /// By somebody who watches, or answered by the terminal.
    Keys(Vec<u8>),
    /// A message, and what ends it.
    Message { keys: Vec<u8>, submit: Vec<u8> },
}

/// Where to type.
#[derive(Debug, Clone)]
pub(crate) struct Keyboard(mpsc::Sender<Stroke>);

/// What was typed, in order.
pub(crate) struct Strokes(mpsc::Receiver<Stroke>);

pub(crate) fn keyboard() -> (Keyboard, Strokes) {
    let (sender, receiver) = mpsc::channel(STROKES_MAX);
    (Keyboard(sender), Strokes(receiver))
}

impl Keyboard {
    /// Waits while there is no room. Nobody reads it any more: it is gone.
    pub(crate) async fn type_in(&self, keys: Vec<u8>) {
        let _ = self.0.send(Stroke::Keys(keys)).await;
    }

    /// Dropped when there is no room.
    pub(crate) fn answer(&self, keys: Vec<u8>) {
        let _ = self.0.try_send(Stroke::Keys(keys));
    }

    /// Room for one stroke, once there is; `None` when nobody reads any more. Cancel safe.
    pub(crate) async fn room(&self) -> Option<OwnedPermit<Stroke>> {
        self.0.clone().reserve_owned().await.ok()
    }
}

impl Strokes {
    /// Types everything in until the program is gone.
    pub(crate) async fn deliver(mut self, pty: OwnedFd, screen: Arc<Screen>) {
        while let Some(stroke) = self.0.recv().await {
            screen.touch();
            let typed = match stroke {
                Stroke::Keys(keys) => press(&pty, &keys).await,
                Stroke::Message { keys, submit } => {
                    let typed = press(&pty, &keys).await;
                    sleep(SUBMIT_AFTER).await;
                    typed.and(press(&pty, &submit).await)
                }
            };
            if typed.is_err() {
                return;
            }
            screen.touch();
        }
    }
}

async fn press(pty: &OwnedFd, mut keys: &[u8]) -> Result<(), Errno> {
    while !keys.is_empty() {
        match write(pty, keys) {
            Ok(written) => keys = &keys[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => sleep(TRY_EVERY).await,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
