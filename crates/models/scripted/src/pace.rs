//! The speed and the delta size of a reply. Values out of range are refused.

use std::time::Duration;

use serde::Deserialize;

/// Default number of characters per delta.
pub const CHUNK_CHARS_DEFAULT: u32 = 16;

/// Most characters in one delta.
pub const CHUNK_CHARS_MAX: u32 = 1_000_000;

/// Longest delay, in milliseconds. Use `stall` for an endless one.
pub const DELAY_MS_MAX: u64 = 600_000;

/// The pace of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) chunk_chars: ChunkChars,
    /// Before each delta.
    pub(crate) delay: Delay,
}

/// Characters per delta, from 1 to [`CHUNK_CHARS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub(crate) struct ChunkChars(u32);

/// A delay of at most [`DELAY_MS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct Delay(Duration);

impl ChunkChars {
    pub(crate) fn get(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Default for ChunkChars {
    fn default() -> Self {
        Self(CHUNK_CHARS_DEFAULT)
    }
}

impl TryFrom<u32> for ChunkChars {
    type Error = String;

    fn try_from(chars: u32) -> Result<Self, String> {
        if (1..=CHUNK_CHARS_MAX).contains(&chars) {
            Ok(Self(chars))
        } else {
            Err(format!("`chunk_chars` must be from 1 to {CHUNK_CHARS_MAX}, not {chars}"))
        }
    }
}

impl Delay {
    pub(crate) fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<u64> for Delay {
    type Error = String;

    fn try_from(ms: u64) -> Result<Self, String> {
        if ms <= DELAY_MS_MAX {
            Ok(Self(Duration::from_millis(ms)))
        } else {
            Err(format!("`delay_ms` must be from 0 to {DELAY_MS_MAX}, not {ms}"))
        }
    }
}
