//! The delimiters of a call in text. A closing delimiter inside of a JSON string does not count; in
//! text that is not JSON, the first one closes.

use super::json_text::{JsonText, Progress};

static DELIMITERS: [Delimiters; 3] = [
    Delimiters { open: "<tool_call>", close: "</tool_call>" },
    Delimiters { open: "```", close: "```" },
    Delimiters { open: "<function_call>", close: "</function_call>" },
];

/// One pair of delimiters.
#[derive(Debug)]
pub(super) struct Delimiters {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
}

/// How the closing delimiter of a block is searched.
#[derive(Debug)]
pub(super) enum Close {
    /// The content may be JSON so far: outside of its strings.
    BehindJson(JsonText),
    /// The content is not JSON: anywhere from this byte on.
    Anywhere(usize),
}

impl Delimiters {
    /// Position of the first opening delimiter; without one, position of a possible prefix of one,
    /// or the end.
    pub(super) fn first(text: &str) -> (usize, Option<&'static Self>) {
        for (at, _) in text.match_indices(['<', '`']) {
            let rest = &text[at..];
            if let Some(delimiters) =
                DELIMITERS.iter().find(|delimiters| rest.starts_with(delimiters.open))
            {
                return (at, Some(delimiters));
            }
            if DELIMITERS.iter().any(|delimiters| delimiters.open.starts_with(rest)) {
                return (at, None);
            }
        }
        (text.len(), None)
    }

    /// Number of bytes at the end of `text` that may start the closing delimiter.
    pub(super) fn half_close(&self, text: &str) -> usize {
        let halves = (1..self.close.len()).rev();
        halves.into_iter().find(|bytes| text.ends_with(&self.close[..*bytes])).unwrap_or_default()
    }
}

impl Close {
    pub(super) fn behind_json(delimiters: &Delimiters) -> Self {
        Self::BehindJson(JsonText::within(delimiters.open.len()))
    }

    pub(super) fn anywhere(delimiters: &Delimiters) -> Self {
        Self::Anywhere(delimiters.open.len())
    }

    /// Position of the closing delimiter in a block that starts with its opening one, if it is
    /// there yet. The block may have grown since the last call.
    pub(super) fn find(&mut self, delimiters: &Delimiters, block: &str) -> Option<usize> {
        let (block, close) = (block, delimiters.close.as_bytes());
        let mut from = match self {
            Self::BehindJson(json) => {
                let progress = json.follow(block);
                let rest = &block.as_bytes()[json.read()..];
                match progress {
                    Progress::Possible => return None,
                    Progress::Broken if rest.starts_with(close) => return Some(json.read()),
                    Progress::Broken if close.starts_with(rest) => return None,
                    Progress::Broken => delimiters.open.len(),
                }
            }
            Self::Anywhere(from) => *from,
        };
        let unseen = &block.as_bytes()[from..];
        let at = unseen.windows(close.len()).position(|bytes| bytes == close);
        let found = at.map(|at| from + at);
        from = found.unwrap_or(from + unseen.len().saturating_sub(close.len() - 1));
        *self = Self::Anywhere(from);
        found
    }
}
