//! Lines the user types while a task runs.
//!
//! The terminal sends every key at once and echoes none: the live rows show the line as it is typed, so that it never
//! mixes with what is written. Signals of keys, such as Ctrl-C, stay. On a terminal that can draw nothing again, lines
//! arrive as the terminal echoes them.

mod mode;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use antiphon_tui::{LineInput, Typed, TypedLine};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

use crate::terminal;
pub(crate) use mode::give_back;

/// Pieces of what was typed that wait to be read. When there are more, the terminal is not read.
const PIECES_MAX: usize = 16;

/// Bytes that are read at a time.
const PIECE_BYTES_MAX: usize = 4096;

/// Whether this process has read the terminal.
static HAS_LISTENED: AtomicBool = AtomicBool::new(false);

/// Discards what was typed for a task and not sent, so that the shell does not get it as a command. Call it last.
pub(crate) fn discard_unsent() {
    if HAS_LISTENED.load(Ordering::Relaxed) {
        discard_typed();
        give_back();
    }
}

/// The same for another process, which read the terminal.
pub(crate) fn discard_typed() {
    if terminal::is_in_foreground() {
        // Without a terminal there is nothing to discard.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }
}

/// Ends this process at once.
pub(crate) fn exit_now(code: i32) -> ! {
    discard_unsent();
    std::process::exit(code)
}

/// How the terminal passes on what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedAs {
    /// Every key at once, without an echo. Something else shows the line.
    Keys,
    /// Whole lines, which the terminal shows.
    Lines,
}

/// Bytes that were typed, and when they were read.
type Piece = (Vec<u8>, Instant);

/// The lines of standard input, when a user can be asked there.
pub(crate) struct Keyboard {
    pieces: Option<mpsc::Receiver<Piece>>,
    input: LineInput,
    typed: VecDeque<Typed>,
    typed_as: TypedAs,
}

impl Keyboard {
    /// Reads lines from the terminal, if standard input and standard error are one.
    pub(crate) fn listen(typed_as: TypedAs) -> Self {
        let interactive = std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal()
            && terminal::is_in_foreground();
        if !interactive {
            return Self::absent();
        }
        HAS_LISTENED.store(true, Ordering::Relaxed);
        if typed_as == TypedAs::Keys {
            mode::take_again();
        }
        let (sender, pieces) = mpsc::channel(PIECES_MAX);
        // A thread, because reading a terminal blocks; the program does not wait for it to end.
        let thread = std::thread::Builder::new().name("keyboard".to_owned());
        let reader = thread.spawn(move || {
            let mut buffer = [0; PIECE_BYTES_MAX];
            while terminal::wait_for_line(mode::keep)
                && let Ok(count) = rustix::io::read(std::io::stdin(), &mut buffer)
                && count > 0
                && sender.blocking_send((buffer[..count].to_vec(), Instant::now())).is_ok()
            {
            }
        });
        Self { pieces: reader.is_ok().then_some(pieces), typed_as, ..Self::absent() }
    }

    /// No user: there are never lines.
    pub(crate) fn absent() -> Self {
        Self {
            pieces: None,
            input: LineInput::default(),
            typed: VecDeque::new(),
            typed_as: TypedAs::Lines,
        }
    }

    /// Whether a user can be asked.
    pub(crate) fn is_present(&self) -> bool {
        self.pieces.is_some()
    }

    /// Takes the terminal again after it was another process's.
    pub(crate) fn take_again(&self) {
        if self.is_present() && self.typed_as == TypedAs::Keys {
            mode::take_again();
        }
    }

    /// The line that is typed now.
    pub(crate) fn input(&self) -> &LineInput {
        &self.input
    }

    /// The line is not sent after all.
    pub(crate) fn take_back(&mut self, line: TypedLine) {
        self.input.take_back(line);
    }

    /// What was typed next; [`Typed::End`] once, at the end of the input. Without a user it never resolves. Cancel safe.
    pub(crate) async fn typed(&mut self) -> Typed {
        loop {
            if let Some(typed) = self.typed.pop_front() {
                if typed == Typed::End {
                    self.pieces = None;
                }
                return typed;
            }
            let Some(pieces) = &mut self.pieces else { return std::future::pending().await };
            self.typed = match pieces.recv().await {
                Some((bytes, at)) => self.input.feed(&bytes, at),
                None => VecDeque::from([Typed::End]),
            };
        }
    }
}
