//! A streamed block: opened, extended by deltas, signed and ended. Deltas are made on demand, so a
//! huge text needs no more memory than its template.

use antiphon_core::Piece;

use crate::step::End;

/// The pieces of one block, in order.
#[derive(Debug)]
pub(crate) struct Block {
    number: u32,
    kind: Kind,
    opening: Option<Piece>,
    chunks: Chunks,
    signature: Option<String>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl Block {
    pub(crate) fn text(number: u32, chunks: Chunks, end: End) -> Self {
        Self::plain(number, Kind::Text, chunks, None, end)
    }

    pub(crate) fn thinking(
        number: u32,
        chunks: Chunks,
        signature: Option<String>,
        end: End,
    ) -> Self {
        Self::plain(number, Kind::Thinking, chunks, signature, end)
    }

    /// A call starts with its id and name, as on most wires.
    pub(crate) fn call(
        number: u32,
        id: String,
        name: String,
        arguments: Chunks,
        signature: Option<String>,
        end: End,
    ) -> Self {
        Self {
            number,
            kind: Kind::Call,
            opening: Some(Piece::ToolCall {
                block: number,
                id: Some(id),
                name: Some(name),
                arguments: String::new(),
            }),
            chunks: arguments,
            signature,
            end,
        }
    }

    fn plain(number: u32, kind: Kind, chunks: Chunks, signature: Option<String>, end: End) -> Self {
        Self {
            number,
            kind,
            // An empty text still opens its block, or there would be none to end.
            opening: chunks.is_empty().then(|| kind.delta(number, String::new())),
            chunks,
            signature,
            end,
        }
    }
}

impl Iterator for Block {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let block = self.number;
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        if let Some(delta) = self.chunks.next() {
            return Some(self.kind.delta(block, delta));
        }
        if let Some(delta) = self.signature.take() {
            return Some(Piece::Signature { block, delta });
        }
        match std::mem::replace(&mut self.end, End::Omitted) {
            End::Said => Some(Piece::BlockEnd { block }),
            End::Omitted => None,
        }
    }
}

impl Kind {
    fn delta(self, block: u32, delta: String) -> Piece {
        match self {
            Self::Text => Piece::Text { block, delta },
            Self::Thinking => Piece::Thinking { block, delta },
            Self::Call => Piece::ToolCall { block, id: None, name: None, arguments: delta },
        }
    }
}

/// A repeated text in chunks of a number of characters.
#[derive(Debug)]
pub(crate) struct Chunks {
    text: String,
    chunk_chars: usize,
    times_left: usize,
    /// Bytes of `text` that are already sent in this repetition.
    sent: usize,
}

impl Chunks {
    pub(crate) fn new(text: String, times: usize, chunk_chars: usize) -> Self {
        Self { times_left: if text.is_empty() { 0 } else { times }, text, chunk_chars, sent: 0 }
    }

    fn is_empty(&self) -> bool {
        self.times_left == 0
    }
}

impl Iterator for Chunks {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut chunk = String::new();
        let mut wanted = self.chunk_chars;
        while wanted > 0 && self.times_left > 0 {
            let rest = self.text.get(self.sent..).unwrap_or_default();
            if let Some((cut, _)) = rest.char_indices().nth(wanted) {
                chunk.push_str(rest.get(..cut).unwrap_or_default());
                self.sent += cut;
                wanted = 0;
            } else {
                chunk.push_str(rest);
                wanted -= rest.chars().count();
                self.sent = 0;
                self.times_left -= 1;
            }
        }
        (!chunk.is_empty()).then_some(chunk)
    }
}
