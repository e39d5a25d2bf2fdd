//! Follows a text that may be JSON, to know where its value ends. Looks at each byte once, and
//! judges no more than it must: what it takes for JSON may still be none, but what it refuses is
//! none for certain.

/// An object or a list of objects, read as far as it has come.
#[derive(Debug)]
pub(super) struct JsonText {
    /// Bytes read.
    read: usize,
    place: Place,
    depth: usize,
}

/// Where the next byte stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// In the word behind the opening of a fence.
    Language,
    /// Before the value.
    Before,
    /// Behind `[`, its first byte.
    List,
    /// Behind `{`, which begins the first object.
    Object,
    /// Between strings.
    Between,
    String,
    Escape,
    /// Behind the value.
    After,
}

/// How far a text has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It may become JSON, or be JSON already.
    Possible,
    /// The byte at [`JsonText::read`] cannot stand there.
    Broken,
}

impl JsonText {
    /// A text that is to be nothing but JSON.
    pub(super) fn new() -> Self {
        Self { read: 0, place: Place::Before, depth: 0 }
    }

    /// The inside of a block, from byte `start` on: a language may come first.
    pub(super) fn within(start: usize) -> Self {
        Self { read: start, place: Place::Language, depth: 0 }
    }

    /// How many bytes have been read. All of them may belong to JSON.
    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// Reads on in `text`, of which the beginning has been read before.
    pub(super) fn follow(&mut self, text: &str) -> Progress {
        for byte in text.as_bytes().iter().skip(self.read) {
            match self.next(*byte) {
                Some(place) => self.place = place,
                None => return Progress::Broken,
            }
            self.read += 1;
        }
        Progress::Possible
    }

    /// The place behind `byte`; `None` if it cannot stand here.
    fn next(&mut self, byte: u8) -> Option<Place> {
        let blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.place {
            Place::Language if byte.is_ascii_alphanumeric() || byte == b'_' => {
                Some(Place::Language)
            }
            Place::Language | Place::Before => match byte {
                b'{' => Some(self.deeper(Place::Object)),
                b'[' => Some(self.deeper(Place::List)),
                _ => blank.then_some(Place::Before),
            },
            Place::List if byte == b'{' => Some(self.deeper(Place::Object)),
            Place::Object if byte == b'"' => Some(Place::String),
            Place::List | Place::Object | Place::After => blank.then_some(self.place),
            Place::Between => self.between(byte),
            Place::Escape | Place::String => match byte {
                0..=0x1f => None,
                b'"' if matches!(self.place, Place::String) => Some(Place::Between),
                b'\\' if matches!(self.place, Place::String) => Some(Place::Escape),
                _ => Some(Place::String),
            },
        }
    }

    fn between(&mut self, byte: u8) -> Option<Place> {
        match byte {
            b'"' => Some(Place::String),
            b'{' | b'[' => Some(self.deeper(Place::Between)),
            b'}' | b']' => {
                self.depth -= 1;
                Some(if self.depth == 0 { Place::After } else { Place::Between })
            }
            // Blanks, marks, numbers, and the letters of `true`, `false`, `null` and exponents.
            _ => b" \t\r\n,:0123456789+-.Eaeflnrstu".contains(&byte).then_some(Place::Between),
        }
    }

    fn deeper(&mut self, place: Place) -> Place {
        self.depth += 1;
        place
    }
}
