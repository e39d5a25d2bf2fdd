//! The keyboard of a terminal: a queue of keys until the program reads them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{Errno, write};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::time::sleep;

use crate::pty::screen::Screen;

/// Most queued inputs. When the queue is full, a watcher waits and an answer of the terminal is
/// dropped.
const INPUTS_MAX: usize = 64;

/// Delay between a message and its submit keys: programs treat input that arrives at once as one
/// paste.
const SUBMIT_AFTER: Duration = Duration::from_millis(50);

/// Interval of retries on a full terminal: the kernel does not always report free space.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// One input.
#[derive(Debug)]
pub(crate) enum Input {
    /// Keys of a watcher, or an answer of the terminal.
    Keys(Vec<u8>),
    /// A message and the keys that submit it.
    Message { keys: Vec<u8>, submit: Vec<u8> },
}

/// The sending end of the queue.
#[derive(Debug, Clone)]
pub(crate) struct Keyboard(mpsc::Sender<Input>);

/// The receiving end of the queue.
pub(crate) struct InputQueue(mpsc::Receiver<Input>);

pub(crate) fn keyboard() -> (Keyboard, InputQueue) {
    let (sender, receiver) = mpsc::channel(INPUTS_MAX);
    (Keyboard(sender), InputQueue(receiver))
}

impl Keyboard {
    /// Waits while the queue is full. Drops the keys when the program is gone.
    pub(crate) async fn type_in(&self, keys: Vec<u8>) {
        let _ = self.0.send(Input::Keys(keys)).await;
    }

    /// Drops the answer when the queue is full.
    pub(crate) fn answer(&self, keys: Vec<u8>) {
        let _ = self.0.try_send(Input::Keys(keys));
    }

    /// Reserves space for one input. `None` when the program is gone. Cancel safe.
    pub(crate) async fn room(&self) -> Option<OwnedPermit<Input>> {
        self.0.clone().reserve_owned().await.ok()
    }
}

impl InputQueue {
    /// Writes queued inputs to the terminal until the program is gone.
    pub(crate) async fn deliver(mut self, pty: OwnedFd, screen: Arc<Screen>) {
        while let Some(stroke) = self.0.recv().await {
            screen.touch();
            let typed = match stroke {
                Input::Keys(keys) => press(&pty, &keys).await,
                Input::Message { keys, submit } => {
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
            Err(Errno::AGAIN) => sleep(RETRY_INTERVAL).await,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
