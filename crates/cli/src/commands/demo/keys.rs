//! Single keys on a terminal: no line break is needed, nothing is echoed, and Ctrl-C stays a signal.
//! Dropping it puts the terminal right again.

use std::io::{IsTerminal, Read};

use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Keys that wait to be read; further ones are lost.
const KEYS_MAX: usize = 16;

/// Somebody's keys.
pub(super) struct Keys {
    before: Termios,
    keys: mpsc::Receiver<u8>,
}

impl Keys {
    /// Listens to the terminal, if there is one.
    pub(super) fn listen() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let before = tcgetattr(stdin()).ok()?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(stdin(), OptionalActions::Now, &silent).ok()?;
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        // A thread of its own, which the end of the program does not wait for.
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let listening = thread.spawn(move || {
            for key in std::io::stdin().lock().bytes().map_while(Result::ok) {
                if matches!(sender.try_send(key), Err(mpsc::error::TrySendError::Closed(_))) {
                    return;
                }
            }
        });
        let keys = Self { before, keys };
        listening.is_ok().then_some(keys)
    }

    /// The next key. Cancel safe.
    pub(super) async fn next(&mut self) -> u8 {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Forgets what was typed before anybody asked.
    pub(super) fn forget(&mut self) {
        while self.keys.try_recv().is_ok() {}
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
