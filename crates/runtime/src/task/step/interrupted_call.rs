//! Decides what becomes of a tool call that was cut off: its start is recorded, its result is not. Recovery
//! never guesses: only a call that did not happen, or that does no harm when repeated, runs again; the
//! model reads of any other that its outcome is unknown, with what is known.
//!
//! | effect when it started     | effect now              | note | decision        |
//! |----------------------------|-------------------------|------|-----------------|
//! | read-only or idempotent    | read-only or idempotent | no   | run again       |
//! | read-only or idempotent    | the tool is gone        | any  | unknown tool    |
//! | anything else              | the tool is gone        | any  | outcome unknown |
//! | any                        | any other case          | any  | the tool looks  |
//!
//! | the look finds             | decision                                       |
//! |----------------------------|------------------------------------------------|
//! | it happened                | its result                                     |
//! | it did not, or does no harm twice | run again, unless the gate denies it by now |
//! | neither                    | outcome unknown                                |

use antiphon_core::port::{CutOffCall, CutOffOutcome};
use antiphon_core::{Effect, ToolCallBlock};

use crate::task::state::StartedCall;
use crate::task::step::TaskRun;
use crate::task::step::call_tools::CallDecision;
use crate::task::step::tools;

/// What happens to an interrupted call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptedCall {
    /// It runs again.
    RunAgain,
    /// Its tool looks whether it happened.
    Inspect,
    /// It gets the result "interrupted, outcome unknown".
    OutcomeUnknown,
    /// It had no effect, and its tool no longer exists.
    UnknownTool,
}

/// Decides about an interrupted call; `now` is the effect of the tool, if it still exists.
fn decide(started: &StartedCall, now: Option<Effect>) -> InterruptedCall {
    let harmless = started.effect.may_run_again();
    match now {
        None if harmless => InterruptedCall::UnknownTool,
        None => InterruptedCall::OutcomeUnknown,
        Some(now) if harmless && now.may_run_again() && started.note.is_none() => {
            InterruptedCall::RunAgain
        }
        Some(_) => InterruptedCall::Inspect,
    }
}

impl TaskRun {
    /// Decides about an interrupted call; `now` is the effect of its tool, if the task may use it.
    pub(super) async fn decide_interrupted(
        &mut self,
        call: ToolCallBlock,
        started: StartedCall,
        now: Option<Effect>,
    ) -> CallDecision {
        match decide(&started, now) {
            InterruptedCall::RunAgain => self.run_again(call),
            InterruptedCall::UnknownTool => self.unknown_tool(call),
            InterruptedCall::OutcomeUnknown => {
                CallDecision::Answer(call, tools::outcome_unknown(""))
            }
            InterruptedCall::Inspect => match self.inspect_cut_off(&call, started).await {
                CutOffOutcome::Happened(result) => CallDecision::Answer(call, tools::found(result)),
                CutOffOutcome::MayRun => self.run_again(call),
                CutOffOutcome::Unknown { known } => {
                    CallDecision::Answer(call, tools::outcome_unknown(&known))
                }
            },
        }
    }

    /// A call that was allowed before runs, unless it is denied by now.
    fn run_again(&mut self, call: ToolCallBlock) -> CallDecision {
        match self.denial(&call) {
            Some(reason) => self.refuse_call(call, reason),
            None => CallDecision::Run(call),
        }
    }

    async fn inspect_cut_off(&self, call: &ToolCallBlock, started: StartedCall) -> CutOffOutcome {
        let Some(arguments) = call.arguments.object() else {
            return CutOffOutcome::Unknown { known: String::new() };
        };
        let cut_off = CutOffCall {
            task_id: self.state.task_id.clone(),
            call_uuid: self.call_uuid(call),
            note: started.note,
        };
        self.deps.tools.inspect_cut_off(&call.name, arguments, &cut_off).await
    }
}
