//! The mode of the terminal before a process works with it.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::terminal;

/// The mode of the terminal before the work began. It is restored when this is dropped: a process that was killed could
/// not do it.
pub(crate) struct TerminalMode(Option<Termios>);

impl TerminalMode {
    pub(crate) fn now() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        let Some(before) = &self.0 else { return };
        // In the background the terminal is the shell's, and writing its mode would stop this process.
        if !terminal::is_in_foreground() {
            return;
        }
        if tcgetattr(std::io::stdin()).is_ok_and(|now| now.local_modes != before.local_modes) {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
