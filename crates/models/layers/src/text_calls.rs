//! Tool calls of models that write them as text.
//!
//! Small models answer with a fenced JSON block or a `<tool_call>` tag instead of a call. With this
//! layer, which a model's settings enable, such a block becomes a call if it names an offered tool.
//! Everything else stays text. A fence is held back until it closes; other text passes through at
//! once.
//!
//! When an answer is interrupted, text that is held back is shown as text, never as a call, because
//! the rest is unknown. If nothing was shown before, it is dropped instead, so that the request can
//! be retried.

mod delimiters;
mod json_text;
mod scanner;
mod written_call;

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request, ToolChoice};
use futures_core::Stream;

use scanner::{Fragment, Scanner};

/// Calls found in text get block numbers from here on, which do not collide with the wire's own.
const FIRST_BLOCK: u32 = 1 << 20;

/// A provider whose written calls become tool calls.
#[derive(Debug, Clone)]
pub struct TextCalls<P> {
    inner: P,
}

impl<P: Provider> TextCalls<P> {
    /// Wraps `inner`.
    pub fn new(inner: P) -> Self {
        Self { inner }
    }
}

impl<P: Provider> Provider for TextCalls<P> {
    fn open(&self, request: Request) -> PieceSource {
        let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let wanted = !tools.is_empty() && request.tool_choice != ToolChoice::None;
        let source = self.inner.open(request);
        if !wanted {
            return source;
        }
        Box::pin(TextCallSource {
            source: Some(source),
            scanner: Scanner::new(tools),
            text: None,
            next_block: FIRST_BLOCK,
            shown: false,
            ready: VecDeque::new(),
        })
    }
}

struct TextCallSource {
    source: Option<PieceSource>,
    scanner: Scanner,
    /// The block of the current text.
    text: Option<Text>,
    next_block: u32,
    /// Whether any part of the answer was returned.
    shown: bool,
    ready: VecDeque<Result<Piece, ProviderError>>,
}

struct Text {
    block: u32,
    /// Whether any part of it was returned. A text that consists of a call alone never is.
    opened: bool,
}

impl TextCallSource {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Text { block, delta } => {
                self.switch_to(block);
                let found = self.scanner.feed(&delta);
                self.push_found(found);
            }
            Piece::BlockEnd { block } if self.is_at(block) => {
                self.flush();
                if self.text.take().is_some_and(|text| text.opened) {
                    self.push(Piece::BlockEnd { block });
                }
            }
            Piece::Done => {
                self.flush();
                self.push(piece);
            }
            Piece::Thinking { .. }
            | Piece::ToolCall { .. }
            | Piece::Signature { .. }
            | Piece::Opaque { .. } => {
                // Blocks are ordered by their first piece: text that is held back came first.
                if self.scanner.is_holding() {
                    self.open_text();
                }
                self.push(piece);
            }
            Piece::Model(_)
            | Piece::BlockEnd { .. }
            | Piece::Usage(_)
            | Piece::Stop(_)
            | Piece::Alive => self.push(piece),
        }
    }

    fn is_at(&self, block: u32) -> bool {
        self.text.as_ref().is_some_and(|text| text.block == block)
    }

    /// The next text belongs to `block`.
    fn switch_to(&mut self, block: u32) {
        if self.is_at(block) {
            return;
        }
        self.flush();
        // Its end may still arrive, and is ignored if the block was never opened.
        self.open_text();
        self.text = Some(Text { block, opened: false });
    }

    fn open_text(&mut self) {
        if let Some(Text { block, opened: false }) = self.text {
            self.push_text(block, String::new());
        }
    }

    fn flush(&mut self) {
        let found = self.scanner.finish();
        self.push_found(found);
    }

    fn push_found(&mut self, found: Vec<Fragment>) {
        for found in found {
            match found {
                Fragment::Text(delta) => {
                    if let Some(Text { block, .. }) = self.text {
                        self.push_text(block, delta);
                    }
                }
                Fragment::Call(call) => {
                    let block = self.next_block;
                    self.next_block += 1;
                    let (name, arguments) = (Some(call.name), call.arguments);
                    self.push(Piece::ToolCall { block, id: None, name, arguments });
                    self.push(Piece::BlockEnd { block });
                }
            }
        }
    }

    fn push_text(&mut self, block: u32, delta: String) {
        self.push(Piece::Text { block, delta });
        if let Some(text) = &mut self.text {
            text.opened = true;
        }
    }

    fn push(&mut self, piece: Piece) {
        self.shown |= piece.is_output();
        self.ready.push_back(Ok(piece));
    }

    /// The answer ends incomplete.
    fn interrupt(&mut self) {
        self.source = None;
        let held = self.scanner.take_held();
        if let Some(Text { block, .. }) = self.text
            && self.shown
            && !held.is_empty()
        {
            self.push_text(block, held);
        }
    }
}

impl Stream for TextCallSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(item));
            }
            let Some(source) = &mut self.source else {
                return Poll::Ready(None);
            };
            match ready!(source.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => {
                    self.take(piece);
                    // Held-back text still counts as activity.
                    if self.ready.is_empty() {
                        return Poll::Ready(Some(Ok(Piece::Alive)));
                    }
                }
                Some(Err(error)) => {
                    self.interrupt();
                    self.ready.push_back(Err(error));
                }
                None => self.interrupt(),
            }
        }
    }
}
