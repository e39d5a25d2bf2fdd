//! The mode of the terminal while keys are read: each arrives at once, and none is echoed. Keys that send signals do.

use std::io::stdin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::terminal;

/// Whose mode the terminal has.
enum Mode {
    /// The shell's.
    Shell,
    /// This process wants its own. It has set that, if the mode before is known.
    Own(Option<Termios>),
}

static MODE: Mutex<Mode> = Mutex::new(Mode::Shell);

fn mode() -> MutexGuard<'static, Mode> {
    MODE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the terminal, now or when this process comes into the foreground.
pub(crate) fn take_again() {
    let mut mode = mode();
    if matches!(*mode, Mode::Shell) {
        *mode = Mode::Own(None);
    }
    set(&mut mode);
}

/// Sets the mode again, if this process wants it and has the terminal: a shell sets its own meanwhile.
pub(super) fn keep() {
    set(&mut mode());
}

/// Gives the terminal back in the mode that it had.
pub(crate) fn give_back() {
    if let Mode::Own(Some(before)) = std::mem::replace(&mut *mode(), Mode::Shell)
        && terminal::is_in_foreground()
    {
        // A terminal that is gone has no mode.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

fn set(mode: &mut Mode) {
    let Mode::Own(before) = mode else { return };
    // In the background, setting a mode would stop this process.
    if !terminal::is_in_foreground() {
        return;
    }
    let Ok(now) = tcgetattr(stdin()) else { return };
    if !now.local_modes.contains(LocalModes::ICANON) {
        return;
    }
    let mut own = now.clone();
    own.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    own.special_codes[SpecialCodeIndex::VMIN] = 1;
    own.special_codes[SpecialCodeIndex::VTIME] = 0;
    if tcsetattr(stdin(), OptionalActions::Now, &own).is_ok() {
        *before = Some(now);
    }
}
