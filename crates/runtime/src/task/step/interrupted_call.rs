//! Decides whether a tool call that a crash interrupted runs again. Recovery never guesses: only a call
//! that does no harm when repeated runs again; the model reads of any other that its outcome is unknown.
//!
//! | effect when it started     | effect now                 | decision        |
//! |----------------------------|----------------------------|-----------------|
//! | read-only or idempotent    | read-only or idempotent    | run again       |
//! | read-only or idempotent    | the tool is gone           | unknown tool    |
//! | anything else              | any                        | outcome unknown |
//! | any                        | anything else              | outcome unknown |

use antiphon_core::Effect;

/// What happens to an interrupted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InterruptedCall {
    /// It runs again.
    RunAgain,
    /// It gets the result "interrupted, outcome unknown".
    OutcomeUnknown,
    /// It had no effect, and its tool no longer exists.
    UnknownTool,
}

/// Decides about an interrupted call; `now` is the effect of the tool, if it still exists.
pub(crate) fn decide(when_started: Effect, now: Option<Effect>) -> InterruptedCall {
    match now {
        _ if !when_started.may_run_again() => InterruptedCall::OutcomeUnknown,
        None => InterruptedCall::UnknownTool,
        Some(now) if now.may_run_again() => InterruptedCall::RunAgain,
        Some(_) => InterruptedCall::OutcomeUnknown,
    }
}
