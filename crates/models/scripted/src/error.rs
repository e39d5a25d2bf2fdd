//! Errors in a script.

use toml::Spanned;

use crate::script::SCRIPT_BYTES_MAX;

/// Longest excerpt of a line in an error, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// Why a text is not a valid script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Over [`SCRIPT_BYTES_MAX`].
    #[error("a script may have {SCRIPT_BYTES_MAX} bytes at most, this one has {bytes}")]
    TooLarge {
        /// Size of the text, in bytes.
        bytes: usize,
    },
    /// An invalid line.
    #[error("line {line}, `{excerpt}`: {reason}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The beginning of the line.
        excerpt: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },
}

/// An error at a byte offset of the script.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

impl Fault {
    /// An error at the value `place`.
    pub(crate) fn of<T>(place: &Spanned<T>, reason: impl Into<String>) -> Self {
        Self { offset: place.span().start, reason: reason.into() }
    }
}

impl ScriptError {
    /// An error in `text`.
    pub(crate) fn new(text: &str, fault: Fault) -> Self {
        let before = text.get(..fault.offset).unwrap_or(text);
        let line = before.matches('\n').count();
        let excerpt = text.lines().nth(line).unwrap_or_default().trim();
        Self::Line {
            line: line + 1,
            excerpt: excerpt.chars().take(EXCERPT_CHARS_MAX).collect(),
            reason: fault.reason,
        }
    }

    /// An error of the TOML parser in `text`.
    pub(crate) fn toml(text: &str, error: &toml::de::Error) -> Self {
        let fault = Fault {
            offset: error.span().map_or(0, |span| span.start),
            reason: error.message().to_owned(),
        };
        Self::new(text, fault)
    }
}
