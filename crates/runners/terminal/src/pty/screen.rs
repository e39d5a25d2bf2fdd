//! The screen of a terminal, as the program has drawn it. Written by one thread, read by many.
//!
//! It answers the queries that programs send to a terminal at their start: whether it is present,
//! where the cursor is, what it supports. It answers no query that would return a program's own
//! text as typed input.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::pty::size::Size;

/// Longest answer to one piece of output. Further queries stay unanswered.
const ANSWER_BYTES_MAX: usize = 1024;

/// The screen of a terminal.
pub(crate) struct Screen {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

struct Inner {
    parser: vt100::Parser<Answers>,
    size: Size,
    /// When output or input last arrived.
    touched: Instant,
    has_spoken: bool,
}

impl Screen {
    pub(crate) fn new(size: Size) -> Self {
        let inner =
            Inner { parser: parser_of(size), size, touched: Instant::now(), has_spoken: false };
        Self { inner: Mutex::new(inner), changed: watch::Sender::new(0) }
    }

    /// Processes output of the program. Returns the terminal's answers, to be typed.
    pub(crate) fn feed(&self, output: &[u8]) -> Vec<u8> {
        let answers = {
            let mut inner = self.inner();
            inner.catch_panic(|parser| parser.process(output));
            inner.touched = Instant::now();
            inner.has_spoken = true;
            std::mem::take(&mut inner.parser.callbacks_mut().0)
        };
        self.changed.send_modify(|times| *times += 1);
        answers
    }

    pub(crate) fn resize(&self, size: Size) {
        {
            let mut inner = self.inner();
            inner.size = size;
            let (rows, columns) = size.non_zero();
            inner.catch_panic(|parser| parser.set_size(rows, columns));
        }
        self.changed.send_modify(|times| *times += 1);
    }

    /// Records that input arrived.
    pub(crate) fn touch(&self) {
        self.inner().touched = Instant::now();
    }

    pub(crate) fn touched(&self) -> Instant {
        self.inner().touched
    }

    pub(crate) fn has_spoken(&self) -> bool {
        self.inner().has_spoken
    }

    pub(crate) fn size(&self) -> Size {
        self.inner().size
    }

    /// Whether the program uses bracketed paste.
    pub(crate) fn takes_paste(&self) -> bool {
        self.inner().parser.screen().bracketed_paste()
    }

    /// A copy of the current screen.
    pub(crate) fn snapshot(&self) -> vt100::Screen {
        self.inner().parser.screen().clone()
    }

    /// Notified of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The last lines of the screen, as text.
    pub(crate) fn last_text(&self, bytes_max: usize) -> String {
        let text = self.inner().parser.screen().contents();
        let text = text.trim();
        let mut from = text.len().saturating_sub(bytes_max);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        text[from..].to_owned()
    }

    /// Poisoning is ignored: the state is consistent after each change.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Catches panics of the parser, so that no output of a program ends the terminal.
    fn catch_panic(&mut self, change: impl FnOnce(&mut vt100::Parser<Answers>)) {
        let parser = &mut self.parser;
        if catch_unwind(AssertUnwindSafe(|| change(parser))).is_err() {
            tracing::warn!("the screen could not show what a program wrote, and begins anew");
            self.parser = parser_of(self.size);
        }
    }
}

fn parser_of(size: Size) -> vt100::Parser<Answers> {
    let (rows, columns) = size.non_zero();
    vt100::Parser::new_with_callbacks(rows, columns, 0, Answers::default())
}

/// Answers to be typed.
#[derive(Default)]
struct Answers(Vec<u8>);

impl vt100::Callbacks for Answers {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        second: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let parameter = params.first().and_then(|param| param.first()).copied().unwrap_or(0);
        let answer = match (first, second, last, parameter) {
            // Device status query.
            (None, None, 'n', 5) => "\x1b[0n".to_owned(),
            // Cursor position query.
            (None, None, 'n', 6) => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            // Device attributes query.
            (None, None, 'c', 0) => "\x1b[?1;2c".to_owned(),
            (Some(b'>'), None, 'c', 0) => "\x1b[>0;0;0c".to_owned(),
            _ => return,
        };
        if self.0.len() + answer.len() <= ANSWER_BYTES_MAX {
            self.0.extend_from_slice(answer.as_bytes());
        }
    }
}
