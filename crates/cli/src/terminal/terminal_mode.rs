//! The mode of the terminal before a process works with it.

use std::io::IsTerminal as _;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::terminal;

/// The mode of the terminal before the work began. It is restored at the end: a process that was killed could not do it.
pub(crate) struct TerminalMode(Option<Termios>);

impl TerminalMode {
    pub(crate) fn now() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Returns whether the terminal had another mode.
    pub(crate) fn restore(self) -> bool {
        let Some(before) = self.0 else { return false };
        // In the background the terminal is the shell's, and writing its mode would stop this process.
        if !terminal::is_in_foreground() {
            return false;
        }
        let has_changed =
            tcgetattr(std::io::stdin()).is_ok_and(|now| now.local_modes != before.local_modes);
        if has_changed {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        }
        has_changed
    }
}

/// Ends what a process that was killed has switched on.
pub(crate) fn reset_screen() {
    let mut output = std::io::stdout();
    if output.is_terminal() && !terminal::is_dumb() {
        // A terminal that is gone needs no reset.
        let _ = antiphon_tui::reset_after_kill(&mut output);
    }
}
