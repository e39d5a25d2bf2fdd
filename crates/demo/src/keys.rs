//! Single keys of the terminal: without a line break, without echo, and Ctrl-C stays a signal. Dropping
//! [`Keys`] restores the terminal.

use std::io::{IsTerminal, Read};

use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

/// Keys that wait to be read; further ones are dropped.
const KEYS_MAX: usize = 16;

/// The keys the user presses.
pub(crate) struct Keys {
    original: Termios,
    keys: mpsc::Receiver<u8>,
}

impl Keys {
    /// Reads keys from standard input, if it is a terminal.
    pub(crate) fn listen() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let original = tcgetattr(stdin()).ok()?;
        let mut raw = original.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        // A thread, because reading a terminal blocks; the program does not wait for it to end.
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let reader = thread.spawn(move || {
            for key in std::io::stdin().lock().bytes().map_while(Result::ok) {
                if matches!(sender.try_send(key), Err(mpsc::error::TrySendError::Closed(_))) {
                    return;
                }
            }
        });
        let keys = Self { original, keys };
        reader.is_ok().then_some(keys)
    }

    /// The next key. Cancel safe.
    pub(crate) async fn next(&mut self) -> u8 {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Drops the keys pressed so far.
    pub(crate) fn clear(&mut self) {
        while self.keys.try_recv().is_ok() {}
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.original);
    }
}
