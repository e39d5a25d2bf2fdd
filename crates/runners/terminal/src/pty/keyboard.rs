//! The keyboard of a terminal: a queue of keys until the program reads them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{Errno, write};
use tokio::sync::mpsc::{self, OwnedPermit};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::pty::prompt::Prompt;
use crate::pty::typing::InputStyle;

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
    /// A message.
    Message(TypedMessage),
}

/// A message to type: its text, if the program waits for it at that moment, then the keys that submit it.
#[derive(Debug)]
pub(crate) struct TypedMessage {
    pub(crate) keys: Vec<u8>,
    pub(crate) style: InputStyle,
    pub(crate) submit: Vec<u8>,
    pub(crate) done: oneshot::Sender<Typed>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typed {
    /// It was typed and submitted.
    Submitted,
    /// It was not typed: the program did not wait for input any more.
    Withheld,
    /// It was typed, but another program got the terminal, so it was not submitted.
    NotSubmitted,
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
    pub(crate) async fn deliver(mut self, pty: OwnedFd, prompt: Arc<Prompt>) {
        while let Some(stroke) = self.0.recv().await {
            let typed = match stroke {
                Input::Keys(keys) => {
                    prompt.screen.touch();
                    press(&pty, &keys).await
                }
                Input::Message(message) => type_message(&pty, &prompt, message).await,
            };
            if typed.is_err() {
                return;
            }
            prompt.screen.touch();
        }
    }
}

/// Types a message. Checks the prompt at the last moment: keys of a watcher may have been before it.
async fn type_message(pty: &OwnedFd, prompt: &Prompt, message: TypedMessage) -> Result<(), Errno> {
    if prompt.check() != Ok(message.style) {
        // Without a receiver the program has ended.
        let _ = message.done.send(Typed::Withheld);
        return Ok(());
    }
    prompt.screen.touch();
    press(pty, &message.keys).await?;
    sleep(SUBMIT_AFTER).await;
    let typed = if prompt.may_submit(message.style) {
        press(pty, &message.submit).await?;
        Typed::Submitted
    } else {
        Typed::NotSubmitted
    };
    let _ = message.done.send(typed);
    Ok(())
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
