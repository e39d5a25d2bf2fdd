//! Single keys of the terminal: without a line break, without echo, and Ctrl-C stays a signal. Dropping
//! [`Keys`] restores the terminal.

use std::io::IsTerminal;

use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc;

use crate::Terminal;

/// Keys that wait to be read; further ones are dropped.
const KEYS_MAX: usize = 16;

/// The keys the user presses.
pub(crate) struct Keys {
    terminal: Terminal,
    original: Termios,
    pressed: mpsc::Receiver<u8>,
}

impl Keys {
    /// Reads keys from standard input, if it is a terminal and this process is in its foreground.
    pub(crate) fn listen(terminal: Terminal) -> Option<Self> {
        if !std::io::stdin().is_terminal() || !(terminal.is_in_foreground)() {
            return None;
        }
        let original = tcgetattr(stdin()).ok()?;
        let mut raw = original.clone();
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        tcsetattr(stdin(), OptionalActions::Now, &raw).ok()?;
        let (sender, pressed) = mpsc::channel(KEYS_MAX);
        // A thread, because reading a terminal blocks; the program does not wait for it to end.
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let reader = thread.spawn(move || {
            let mut key = [0];
            while (terminal.wait_for_key)() && matches!(rustix::io::read(stdin(), &mut key), Ok(1))
            {
                if matches!(sender.try_send(key[0]), Err(mpsc::error::TrySendError::Closed(_))) {
                    return;
                }
            }
        });
        let keys = Self { terminal, original, pressed };
        reader.is_ok().then_some(keys)
    }

    /// The next key. Cancel safe.
    pub(crate) async fn next(&mut self) -> u8 {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }

    /// Drops the keys pressed so far.
    pub(crate) fn clear(&mut self) {
        while self.pressed.try_recv().is_ok() {}
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if (self.terminal.is_in_foreground)() {
            let _ = tcsetattr(stdin(), OptionalActions::Now, &self.original);
        }
    }
}
