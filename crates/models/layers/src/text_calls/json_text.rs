//! Follows a text that may be JSON to find where its value ends. Reads each byte once and checks
//! only what is necessary: an accepted text may still be invalid JSON, a refused one certainly is.

/// An object or a list of objects, read so far.
#[derive(Debug)]
pub(super) struct JsonText {
    /// Number of bytes read.
    read: usize,
    position: Position,
    depth: usize,
}

/// The position of the next byte in the syntax.
#[derive(Debug, Clone, Copy)]
enum Position {
    /// In the language word after the opening of a fence.
    Language,
    /// Before the value.
    Before,
    /// After `[`.
    List,
    /// After the `{` of the first object.
    Object,
    /// Between strings.
    Between,
    String,
    Escape,
    /// After the value.
    After,
}

/// The result of reading a text so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It may become valid JSON, or is already.
    Possible,
    /// The byte at [`JsonText::read`] is not allowed there.
    Broken,
}

impl JsonText {
    /// For a text that must be JSON alone.
    pub(super) fn new() -> Self {
        Self { read: 0, position: Position::Before, depth: 0 }
    }

    /// For the content of a block from byte `start` on: a language may come first.
    pub(super) fn within(start: usize) -> Self {
        Self { read: start, position: Position::Language, depth: 0 }
    }

    /// Number of bytes read. All of them may belong to JSON.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// Continues with `text`, whose beginning was read before.
    pub(super) fn follow(&mut self, text: &str) -> Progress {
        for byte in text.as_bytes().iter().skip(self.read) {
            match self.next(*byte) {
                Some(position) => self.position = position,
                None => return Progress::Broken,
            }
            self.read += 1;
        }
        Progress::Possible
    }

    /// The position after `byte`; `None` if it is not allowed here.
    fn next(&mut self, byte: u8) -> Option<Position> {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.position {
            Position::Language if byte.is_ascii_alphanumeric() || byte == b'_' => {
                Some(Position::Language)
            }
            Position::Language | Position::Before => match byte {
                b'{' => Some(self.deeper(Position::Object)),
                b'[' => Some(self.deeper(Position::List)),
                _ => blank.then_some(Position::Before),
            },
            Position::List if byte == b'{' => Some(self.deeper(Position::Object)),
            Position::Object if byte == b'"' => Some(Position::String),
            Position::List | Position::Object | Position::After => blank.then_some(self.position),
            Position::Between => self.between(byte),
            Position::Escape | Position::String => match byte {
                0..=0x1f => None,
                b'"' if matches!(self.position, Position::String) => Some(Position::Between),
                b'\\' if matches!(self.position, Position::String) => Some(Position::Escape),
                _ => Some(Position::String),
            },
        }
    }

    fn between(&mut self, byte: u8) -> Option<Position> {
        match byte {
            b'"' => Some(Position::String),
            b'{' | b'[' => Some(self.deeper(Position::Between)),
            b'}' | b']' => {
                self.depth -= 1;
                Some(if self.depth == 0 { Position::After } else { Position::Between })
            }
            // White space, punctuation, numbers, and the letters of `true`, `false`, `null` and
            // exponents.
            _ => b" \t\r\n,:0123456789+-.Eaeflnrstu".contains(&byte).then_some(Position::Between),
        }
    }

    fn deeper(&mut self, position: Position) -> Position {
        self.depth += 1;
        position
    }
}
