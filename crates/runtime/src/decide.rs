//! What comes next. Pure: the same events and the same surroundings, the same step.
//!
//! | in this order                                        | step                                 |
//! |------------------------------------------------------|--------------------------------------|
//! | the task has ended                                   | [`Step::Over`]                       |
//! | its time is over                                     | [`Step::Refuse`]                     |
//! | a request to it was not answered in time             | [`Step::Expire`]                     |
//! | a request of its own was not answered in time        | [`Step::TimeOut`]                    |
//! | somebody paused it                                   | [`Step::Rest`]                       |
//! | a detached task has ended                            | [`Step::Report`]                     |
//! | calls without a result, one of them is asked about   | [`Step::Rest`]                       |
//! | calls without a result that wait for nobody          | [`Step::Call`]                       |
//! | calls that waited for others, who are done           | [`Step::Settle`]                     |
//! | calls that wait for a client, for too long           | [`Step::Remind`]                     |
//! | calls that wait for others                           | [`Step::Rest`]                       |
//! | a message that steers has arrived                    | [`Step::Take`]                       |
//! | the model said its last word, somebody asked for it  | [`Step::Answer`]                     |
//! | the model said its last word, messages wait          | [`Step::Take`]                       |
//! | the model said its last word, others are at work     | [`Step::Idle`]                       |
//! | the model said its last word, the agent stands       | [`Step::Idle`]                       |
//! | the model said its last word                         | [`Step::Finish`] or [`Step::Reject`] |
//! | a limit is reached, or nobody knows what it costs     | [`Step::Refuse`]                     |
//! | no more may be spent for now                         | [`Step::Halt`], then [`Step::Rest`]  |
//! | the conversation is too long                         | [`Step::Compact`]                    |
//! | otherwise                                            | [`Step::Ask`]                        |

use std::sync::Arc;

use antiphon_core::{
    AssistantMessage, Effect, InteractionId, Message, TaskId, ToolCallBlock, ToolCallId, WaitingFor,
};
use serde_json::Value;

use crate::budget::{BudgetRefusal, BudgetSpent};
use crate::compact;
use crate::flight::PendingCall;
use crate::inbox::{self, About};
use crate::limits::{self, LimitContext, LimitReached};
use crate::output;
use crate::state::TaskState;

/// How full the model's window may get before the conversation is made shorter, in percent.
const WINDOW_PERCENT_MAX: u64 = 80;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Ask the model.
    Ask,
    /// Run these calls of the last answer; the others have their results.
    Call(Vec<Pending>),
    /// Give these calls their results: what they waited for is there.
    Settle(Vec<ToolCallId>),
    /// Say that a client has not said what came of its call.
    Remind,
    /// Let these detached tasks, which have ended, report.
    Report(Vec<TaskId>),
    /// Say that these requests were not answered in time.
    Expire(Vec<InteractionId>),
    /// Take it that these requests of its own are not answered.
    TimeOut(Vec<InteractionId>),
    /// Answer the requests that the turn was about with its last word.
    Answer(Value),
    /// Let these messages join the conversation.
    Take(Vec<InteractionId>),
    /// Make the conversation shorter.
    Compact,
    /// Deliver the result.
    Finish(Value),
    /// Tell the model that its result is not what was asked for.
    Reject(String),
    /// Give up.
    Refuse(LimitReached),
    /// Wait until more may be spent.
    Halt(BudgetSpent),
    /// Nothing, until somebody does something.
    Rest,
    /// Nothing, until a detached task reports, a peer answers, or something arrives.
    Idle,
    /// Nothing: it is over.
    Over,
}

/// A call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// The call.
    pub call: ToolCallBlock,
    /// What it does to the world, if it was started before: it was cut off then.
    pub cut_off: Option<Effect>,
}

/// What comes next for a task.
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
        // One that stands begins with what arrives.
        let begins = state.created.resident && !spoken_to(state.conversation.own());
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

/// Something was said since: it was not the last word then.
fn spoken_to(since: &[Arc<Message>]) -> bool {
    since.iter().any(|message| matches!(&**message, Message::User(_)))
}

/// Requests whose time is over: of others first, then its own.
fn late(state: &TaskState, standing: &LimitContext<'_>) -> Option<Step> {
    let expired = state.late_answers(standing.now);
    if !expired.is_empty() {
        return Some(Step::Expire(expired));
    }
    let sent = state.requests.iter().filter(|(_, sent)| standing.now >= sent.until);
    let sent: Vec<InteractionId> = sent.map(|(id, _)| *id).collect();
    (!sent.is_empty()).then_some(Step::TimeOut(sent))
}

/// In the middle of a turn.
fn turn(state: &TaskState, standing: &LimitContext<'_>) -> Step {
    let about = if state.subject.is_some() { About::Request } else { About::Anything };
    take(inbox::for_steering(&state.queue, about)).unwrap_or_else(|| ask(state, standing))
}

/// At the end of a turn, or before the first.
fn rest_of_turn(state: &TaskState, word: Option<Value>) -> Step {
    let Some(word) = word else {
        return take(inbox::for_turn(&state.queue)).unwrap_or(Step::Idle);
    };
    if state.subject.is_some() {
        return Step::Answer(word);
    }
    take(inbox::for_turn(&state.queue)).unwrap_or_else(|| {
        // It is over when everything that it asked others for is there.
        let waits = !state.detached.is_empty() || !state.requests.is_empty();
        if waits || state.created.resident { Step::Idle } else { deliver(state, word) }
    })
}

/// What to do about calls without a result that nobody is asked about.
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

/// What an answer delivers. A `final` that has a result was turned down.
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
