//! The key that ends watching.

use std::fmt;
use std::str::FromStr;

/// A key pressed together with the control key: `ctrl-\`, `ctrl-]`, `ctrl-a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetachKey(u8);

/// The text names no such key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is no key to detach with: write `ctrl-` and a letter, `\\`, `]`, `^` or `_`")]
pub struct DetachKeyError {
    /// The text.
    pub found: String,
}

impl DetachKey {
    /// The byte that a terminal sends for the key.
    pub(super) fn byte(self) -> u8 {
        self.0 & 0x1f
    }
}

/// `ctrl-\`
impl Default for DetachKey {
    fn default() -> Self {
        Self(b'\\')
    }
}

impl FromStr for DetachKey {
    type Err = DetachKeyError;

    fn from_str(text: &str) -> Result<Self, DetachKeyError> {
        let error = || DetachKeyError { found: text.to_owned() };
        let lower = text.to_ascii_lowercase();
        match lower.strip_prefix("ctrl-").map(str::as_bytes) {
            Some([key @ (b'a'..=b'z' | b'\\' | b']' | b'^' | b'_')]) => Ok(Self(*key)),
            Some(_) | None => Err(error()),
        }
    }
}

impl fmt::Display for DetachKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ctrl-{}", char::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_written() {
        for (text, byte) in [("ctrl-\\", 0x1c), ("Ctrl-]", 0x1d), ("ctrl-a", 0x01)] {
            let key: DetachKey = text.parse().unwrap();
            assert_eq!(key.byte(), byte);
            assert_eq!(key.to_string(), text.to_ascii_lowercase());
        }
        for wrong in ["", "ctrl-", "a", "ctrl-1", "ctrl-ab", "ctrl-é"] {
            assert!(wrong.parse::<DetachKey>().is_err(), "{wrong}");
        }
    }
}
