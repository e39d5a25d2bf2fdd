//! Decides the next action of a task. Pure: the same state and context give the same action.
//!
//! | checked in this order                                 | action                               |
//! |-------------------------------------------------------|--------------------------------------|
//! | the task has ended                                    | [`Step::Over`]                       |
//! | its time is over                                      | [`Step::Refuse`]                     |
//! | a request to it is overdue                            | [`Step::Expire`]                     |
//! | one of its own requests is overdue                    | [`Step::TimeOut`]                    |
//! | it is paused                                          | [`Step::Rest`]                       |
//! | a detached task has ended                             | [`Step::Report`]                     |
//! | calls without a result, one waits for approval        | [`Step::Rest`]                       |
//! | calls without a result that wait for nothing          | [`Step::Call`]                       |
//! | pending calls whose wait is over                      | [`Step::Settle`]                     |
//! | pending calls of a client's tools that are overdue    | [`Step::Remind`]                     |
//! | other pending calls                                   | [`Step::Rest`]                       |
//! | a steering message is queued                          | [`Step::Take`]                       |
//! | final answer, and the turn is about a request         | [`Step::Answer`]                     |
//! | final answer, and messages are queued                 | [`Step::Take`]                       |
//! | final answer, and detached tasks or requests are open | [`Step::Idle`]                       |
//! | final answer of a resident agent                      | [`Step::Idle`]                       |
//! | final answer                                          | [`Step::Finish`] or [`Step::Reject`] |
//! | a limit is reached, or the price of a model is unknown| [`Step::Refuse`]                     |
//! | the spend limit is reached                            | [`Step::Halt`], then [`Step::Rest`]  |
//! | the conversation is too long                          | [`Step::Compact`]                    |
//! | otherwise                                             | [`Step::Ask`]                        |

use std::sync::Arc;

use antiphon_core::{
    AssistantMessage, Effect, InteractionId, Message, TaskId, ToolCallBlock, ToolCallId, WaitingFor,
};
use serde_json::Value;

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::dispatch::pending_call::PendingCall;
use crate::inbox::reading_order::{self, About};
use crate::task::compact;
use crate::task::limits::{self, LimitContext, LimitReached};
use crate::task::output;
use crate::task::state::TaskState;

/// Share of the model's window, in percent, at which the conversation is compacted.
const WINDOW_PERCENT_MAX: u64 = 80;

/// What the loop does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Call the model.
    Ask,
    /// Run these calls of the last answer; the other calls have results.
    Call(Vec<Pending>),
    /// Give these pending calls their results: their wait is over.
    Settle(Vec<ToolCallId>),
    /// Suspend the task, because its client has not sent the result of a call in time.
    Remind,
    /// Queue the reports of these detached tasks, which have ended.
    Report(Vec<TaskId>),
    /// Answer these requests of others as failed: they are overdue.
    Expire(Vec<InteractionId>),
    /// Give up waiting for the answers to these own requests.
    TimeOut(Vec<InteractionId>),
    /// Answer the request of this turn with the model's final answer.
    Answer(Value),
    /// Move these queued messages into the conversation.
    Take(Vec<InteractionId>),
    /// Shorten the conversation.
    Compact,
    /// Complete the task with this result.
    Finish(Value),
    /// Tell the model that its result does not fit the output schema.
    Reject(String),
    /// Fail the task, because it reached a limit.
    Refuse(LimitReached),
    /// Suspend the task until more may be spent.
    Halt(BudgetSpent),
    /// Suspend the task: it waits for a user, a client or other tasks.
    Rest,
    /// Suspend the task until a detached task reports, a peer answers, or a message arrives.
    Idle,
    /// Nothing to do: the task has ended.
    Over,
}

/// A tool call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// The call as the model wrote it.
    pub call: ToolCallBlock,
    /// Effect of the tool, when the call was started before and interrupted.
    pub cut_off: Option<Effect>,
}

/// Decides the next action of a task.
pub fn next(state: &TaskState, standing: &LimitContext<'_>) -> Step {
    if state.status.is_terminal() {
        return Step::Over;
    }
    if let Some(limit) = limits::time_over(state, standing) {
        return Step::Refuse(limit);
    }
    if let Some(step) = late(state, standing) {
        return step;
    }
    if state.waiting_for == Some(WaitingFor::Resume) {
        return Step::Rest;
    }
    let reports = state.detached.values().filter(|task| standing.outcomes.contains_key(*task));
    let reports: Vec<TaskId> = reports.cloned().collect();
    if !reports.is_empty() {
        return Step::Report(reports);
    }
    let Some((answer, since)) = state.last_lap() else {
        // A resident agent begins with the first message.
        let begins = state.created.standing && !spoken_to(state.conversation.own());
        return if begins { rest_of_turn(state, None) } else { turn(state, standing) };
    };
    let pending = pending(state, answer, since);
    if !pending.is_empty() {
        let undecided = |pending: &Pending| {
            state.asked.get(&pending.call.id).is_some_and(|question| question.answer.is_none())
        };
        let waits = pending.iter().any(undecided);
        return if waits { Step::Rest } else { go_on(state, pending, standing) };
    }
    match last_word(answer, since).filter(|_| !spoken_to(since)) {
        Some(word) => rest_of_turn(state, Some(word)),
        None => turn(state, standing),
    }
}

/// Whether a user message follows, so that the answer was not the final one.
fn spoken_to(since: &[Arc<Message>]) -> bool {
    since.iter().any(|message| matches!(&**message, Message::User(_)))
}

/// Overdue requests: those of others first, then its own.
fn late(state: &TaskState, standing: &LimitContext<'_>) -> Option<Step> {
    let expired = state.late_answers(standing.now);
    if !expired.is_empty() {
        return Some(Step::Expire(expired));
    }
    let sent = state.requests.iter().filter(|(_, sent)| standing.now >= sent.until);
    let sent: Vec<InteractionId> = sent.map(|(id, _)| *id).collect();
    (!sent.is_empty()).then_some(Step::TimeOut(sent))
}

/// Decides within a turn.
fn turn(state: &TaskState, standing: &LimitContext<'_>) -> Step {
    let about = if state.subject.is_some() { About::Request } else { About::Anything };
    take(reading_order::for_steering(&state.queue, about)).unwrap_or_else(|| ask(state, standing))
}

/// Decides at the end of a turn, or before the first one.
fn rest_of_turn(state: &TaskState, word: Option<Value>) -> Step {
    let Some(word) = word else {
        return take(reading_order::for_turn(&state.queue)).unwrap_or(Step::Idle);
    };
    if state.subject.is_some() {
        return Step::Answer(word);
    }
    take(reading_order::for_turn(&state.queue)).unwrap_or_else(|| {
        // The task is done when its detached tasks and requests are.
        let waits = !state.detached.is_empty() || !state.requests.is_empty();
        if waits || state.created.standing { Step::Idle } else { deliver(state, word) }
    })
}

/// Decides about calls without a result when none of them waits for approval.
fn go_on(state: &TaskState, pending: Vec<Pending>, standing: &LimitContext<'_>) -> Step {
    let (waiting, open): (Vec<Pending>, Vec<Pending>) =
        pending.into_iter().partition(|pending| state.flights.contains_key(&pending.call.id));
    if !open.is_empty() {
        return Step::Call(open);
    }
    let flights = waiting.into_iter().filter_map(|pending| {
        state.flights.get(&pending.call.id).map(|flight| (pending.call.id, flight))
    });
    let flights: Vec<(ToolCallId, &PendingCall)> = flights.collect();
    let answered = |flight: &PendingCall| match flight {
        PendingCall::Request { id, .. } => state.response_to(*id).is_some(),
        PendingCall::Children { .. } | PendingCall::Await { .. } | PendingCall::External { .. } => {
            false
        }
    };
    let over = flights
        .iter()
        .filter(|(_, flight)| flight.is_over(standing.outcomes, standing.now) || answered(flight));
    let over: Vec<ToolCallId> = over.map(|(id, _)| id.clone()).collect();
    if !over.is_empty() {
        return Step::Settle(over);
    }
    let late = |flight: &PendingCall| match flight {
        PendingCall::External { until } => standing.now >= *until,
        PendingCall::Children { .. } | PendingCall::Await { .. } | PendingCall::Request { .. } => {
            false
        }
    };
    let late = flights.iter().any(|(_, flight)| late(flight));
    if late && state.waiting_for.is_none() { Step::Remind } else { Step::Rest }
}

fn pending(state: &TaskState, answer: &AssistantMessage, since: &[Arc<Message>]) -> Vec<Pending> {
    let open =
        answer.tool_calls().filter(|call| !output::is_final(call) && !is_answered(&call.id, since));
    let cut_off = |call: &ToolCallBlock| state.started.get(&call.id).copied();
    open.map(|call| Pending { call: call.clone(), cut_off: cut_off(call) }).collect()
}

/// The result an answer delivers. A `final` call that has a result was rejected.
fn last_word(answer: &AssistantMessage, since: &[Arc<Message>]) -> Option<Value> {
    let delivers = |call: &&ToolCallBlock| output::is_final(call) && !is_answered(&call.id, since);
    match answer.tool_calls().find(delivers) {
        Some(call) => Some(output::delivered(call)),
        None if answer.tool_calls().next().is_none() => Some(Value::String(answer.text())),
        None => None,
    }
}

fn take(ids: Vec<InteractionId>) -> Option<Step> {
    (!ids.is_empty()).then_some(Step::Take(ids))
}

fn deliver(state: &TaskState, word: Value) -> Step {
    match output::check(state.created.output_schema.as_ref(), word) {
        Ok(result) => Step::Finish(result),
        Err(_) if state.rejected >= output::REPAIRS_MAX => {
            Step::Refuse(LimitReached::Repairs { max: output::REPAIRS_MAX })
        }
        Err(reason) => Step::Reject(reason),
    }
}

fn ask(state: &TaskState, standing: &LimitContext<'_>) -> Step {
    if let Some(limit) = limits::reached(state, standing) {
        return Step::Refuse(limit);
    }
    match &standing.budget {
        None => {}
        Some(BudgetRefusal::PriceUnknown { model }) => {
            return Step::Refuse(LimitReached::PriceUnknown { model: model.clone() });
        }
        Some(BudgetRefusal::Spent(spent)) => {
            let waits = state.waiting_for == Some(WaitingFor::Budget);
            let told = waits && spent.is_told_by(state.detail.as_ref());
            return if told { Step::Rest } else { Step::Halt(spent.clone()) };
        }
    }
    let room = standing.window_tokens.map(|window| window / 100 * WINDOW_PERCENT_MAX);
    if room.is_some_and(|room| state.conversation.tokens() > room)
        && compact::cut(state, compact::room(standing.window_tokens)).is_some()
    {
        return Step::Compact;
    }
    Step::Ask
}

fn is_answered(id: &ToolCallId, results: &[Arc<Message>]) -> bool {
    results.iter().any(|message| match &**message {
        Message::ToolResult(result) => result.tool_call_id == *id,
        Message::User(_) | Message::Assistant(_) => false,
    })
}
