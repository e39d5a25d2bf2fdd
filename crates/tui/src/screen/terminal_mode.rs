//! The terminal while the program has it: keys arrive one by one, pastes as one. It is restored when the program ends,
//! also by a panic.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use crossterm::{ExecutableCommand, QueueableCommand};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// The alternate screen is shown.
static ALTERNATE: AtomicBool = AtomicBool::new(false);

/// Says whether the alternate screen is shown, which is left when the terminal is restored.
pub(crate) fn set_alternate(is_shown: bool) {
    ALTERNATE.store(is_shown, Ordering::Relaxed);
}

/// The terminal is in the mode of the program until this is dropped.
pub(crate) struct TerminalMode;

impl TerminalMode {
    pub(crate) fn enter() -> io::Result<Self> {
        Self::enter_again()?;
        Ok(Self)
    }

    /// Takes the terminal again after [`leave`](Self::leave).
    pub(crate) fn enter_again() -> io::Result<()> {
        enable_raw_mode()?;
        io::stdout().execute(EnableBracketedPaste)?.execute(EnableFocusChange)?;
        Ok(())
    }

    /// Gives the terminal to another program for a while.
    pub(crate) fn leave() -> io::Result<()> {
        restore()
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = restore();
    }
}

/// Gives the terminal back in the mode that it had.
fn restore() -> io::Result<()> {
    let mut output = io::stdout();
    output.queue(DisableBracketedPaste)?.queue(DisableFocusChange)?;
    output.write_all(b"\x1b[?2026l")?;
    // Leaving it twice would move the cursor.
    if ALTERNATE.swap(false, Ordering::Relaxed) {
        output.write_all(b"\x1b[?1049l")?;
    }
    output.write_all(b"\x1b[?25h\x1b[0m")?;
    output.flush()?;
    disable_raw_mode()
}

/// Has the reader of keys look at the terminal again: it leaves keys that come at the same moment as a new size until the
/// next key. Setting a mode, also the same, reports that there is something to read.
pub(crate) fn look_for_keys() {
    let terminal = io::stdin();
    // A terminal that is gone has none.
    let _ = tcgetattr(&terminal).and_then(|mode| tcsetattr(&terminal, OptionalActions::Now, &mode));
}

/// Whether the terminal is still in the mode of the program. A shell that had it meanwhile has changed it.
pub(crate) fn is_kept() -> bool {
    tcgetattr(io::stdin()).is_ok_and(|mode| !mode.local_modes.contains(LocalModes::ICANON))
}

/// Ends everything that the program may have switched on, for a process that was killed in the meantime. Its mode of the
/// terminal (`termios`) is not restored here.
pub fn reset_after_kill(output: &mut impl Write) -> io::Result<()> {
    // The cursor is saved first: leaving the alternate screen restores it, also when that was not shown.
    output.write_all(
        b"\x1b[?2026l\x1b[?2004l\x1b[?1004l\x1b7\x1b[?1049l\x1b[?25h\x1b[0m\r\n\x1b[J",
    )?;
    output.flush()
}

/// Restores the terminal before a panic is reported.
pub(crate) fn restore_at_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let _ = restore();
        report(panic);
    }));
}
