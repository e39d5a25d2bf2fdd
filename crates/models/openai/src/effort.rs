//! Reasoning effort.
//!
//! Both wires have words for it, where a [`Request`](antiphon_core::Request) has a number of
//! tokens:
//!
//! | tokens                              | word     |
//! |-------------------------------------|----------|
//! | none                                | not sent, the model's default |
//! | below [`MEDIUM_EFFORT_TOKENS_MIN`]  | `low`    |
//! | below [`HIGH_EFFORT_TOKENS_MIN`]    | `medium` |
//! | more                                | `high`   |

use std::num::NonZeroU32;

/// Smallest budget that is sent as `medium`.
pub const MEDIUM_EFFORT_TOKENS_MIN: u32 = 4_096;

/// Smallest budget that is sent as `high`.
pub const HIGH_EFFORT_TOKENS_MIN: u32 = 16_384;

/// The word for a budget.
pub(crate) fn effort(budget: NonZeroU32) -> &'static str {
    match budget.get() {
        ..MEDIUM_EFFORT_TOKENS_MIN => "low",
        MEDIUM_EFFORT_TOKENS_MIN..HIGH_EFFORT_TOKENS_MIN => "medium",
        HIGH_EFFORT_TOKENS_MIN.. => "high",
    }
}
