//! Decides the next action of a task. Pure: the same state and context give the same action.
//!
//! | checked in this order                                  | action                                              |
//! |--------------------------------------------------------|-----------------------------------------------------|
//! | the task has ended                                     | [`Action::Ended`]                                   |
//! | its time is over                                       | [`Action::FailOnLimit`]                             |
//! | its peer is away, and the next attempt is later        | [`Action::WaitForPeer`]                             |
//! | a request to it is overdue                             | [`Action::ExpireRequests`]                          |
//! | one of its own requests is overdue                     | [`Action::TimeOutRequests`]                         |
//! | it is paused                                           | [`Action::Suspend`]                                 |
//! | a detached task has ended                              | [`Action::ReportDetached`]                          |
//! | it only shortens a conversation, and that is done      | [`Action::Finish`]                                  |
//! | calls without a result, one waits for approval         | [`Action::Suspend`]                                 |
//! | calls without a result that wait for nothing           | [`Action::CallTools`]                               |
//! | pending calls whose wait is over                       | [`Action::CompleteCalls`]                           |
//! | pending calls of a client's tools that are overdue     | [`Action::WaitForClient`]                           |
//! | other pending calls                                    | [`Action::Suspend`]                                 |
//! | a steering message is queued                           | [`Action::TakeMessages`]                            |
//! | final answer, and the turn is about a request          | [`Action::AnswerRequest`]                           |
//! | final answer, and messages are queued                  | [`Action::TakeMessages`]                            |
//! | final answer, and detached tasks or requests are open  | [`Action::Idle`]                                    |
//! | final answer of a resident agent                       | [`Action::Idle`]                                    |
//! | final answer                                           | [`Action::Finish`] or [`Action::RejectOutput`]      |
//! | a limit is reached, or the price of a model is unknown | [`Action::FailOnLimit`]                             |
//! | the spend limit is reached                             | [`Action::WaitForBudget`], then [`Action::Suspend`] |
//! | its model is away, and the next attempt is later       | [`Action::WaitForModel`]                            |
//! | the conversation is too long                           | [`Action::Compact`]                                 |
//! | otherwise                                              | [`Action::AskModel`]                                |

use std::sync::Arc;

use antiphon_core::{
    AssistantMessage, InteractionId, Message, TaskAccess, TaskId, ToolCallBlock, ToolCallId,
    WaitingFor,
};
use serde_json::Value;

use crate::budget::spend_limits::{BudgetRefusal, BudgetSpent};
use crate::dispatch::pending_call::PendingCall;
use crate::inbox::reading_order::{self, TurnSubject};
use crate::task::limits::{self, LimitContext, LimitReached};
use crate::task::state::{StartedCall, TaskState};
use crate::task::step::compact;
use crate::task::step::output;

/// What the loop does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Call the model.
    AskModel,
    /// Run these calls of the last answer; the other calls have results.
    CallTools(Vec<UnansweredCall>),
    /// Give these pending calls their results: their wait is over.
    CompleteCalls(Vec<ToolCallId>),
    /// Suspend the task, because its client has not sent the result of a call in time.
    WaitForClient,
    /// Queue the reports of these detached tasks, which have ended.
    ReportDetached(Vec<TaskId>),
    /// Answer these requests of others as failed: they are overdue.
    ExpireRequests(Vec<InteractionId>),
    /// Give up waiting for the answers to these own requests.
    TimeOutRequests(Vec<InteractionId>),
    /// Answer the request of this turn with the model's final answer.
    AnswerRequest(Value),
    /// Move these queued messages into the conversation.
    TakeMessages(Vec<InteractionId>),
    /// Shorten the conversation.
    Compact,
    /// Complete the task with this result.
    Finish(Value),
    /// Tell the model that its result does not fit the output schema.
    RejectOutput(String),
    /// Fail the task, because it reached a limit.
    FailOnLimit(LimitReached),
    /// Suspend the task until more may be spent.
    WaitForBudget(BudgetSpent),
    /// Suspend the task until the next attempt to reach its model.
    WaitForModel,
    /// Suspend the task until the next attempt to reach its peer.
    WaitForPeer,
    /// Suspend the task: it waits for a user, a client or other tasks.
    Suspend,
    /// Suspend the task until a detached task reports, a peer answers, or a message arrives.
    Idle,
    /// Nothing to do: the task has ended.
    Ended,
}

/// A tool call without a result.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// The call as the model wrote it.
    pub call: ToolCallBlock,
    /// What was recorded at its start, when the call was started before and interrupted.
    pub interrupted: Option<StartedCall>,
}

/// Decides the next action of a task.
pub fn next_action(state: &TaskState, context: &LimitContext<'_>) -> Action {
    if state.status.is_terminal() {
        return Action::Ended;
    }
    if let Some(limit) = limits::time_over(state, context) {
        return Action::FailOnLimit(limit);
    }
    if state.waiting_for == Some(WaitingFor::Peer) && state.outage.waits(context.time) {
        return Action::WaitForPeer;
    }
    if let Some(step) = overdue(state, context) {
        return step;
    }
    if state.waiting_for == Some(WaitingFor::Resume) {
        return Action::Suspend;
    }
    let reports = state.detached.values().filter(|task| context.outcomes.contains_key(*task));
    let reports: Vec<TaskId> = reports.cloned().collect();
    if !reports.is_empty() {
        return Action::ReportDetached(reports);
    }
    if state.created.access == TaskAccess::CompactOnly {
        let is_done = !compact::is_due(state, context.window_tokens);
        let done = || Action::Finish(Value::String(compact::summary(state)));
        return if is_done { done() } else { ask_model(state, context) };
    }
    let Some((answer, since)) = state.last_step() else {
        // A resident agent begins with the first message.
        let begins = state.created.resident && !has_user_message(state.conversation.own());
        return if begins { end_of_turn(state, None) } else { within_turn(state, context) };
    };
    let pending = unanswered_calls(state, answer, since);
    if !pending.is_empty() {
        let undecided = |pending: &UnansweredCall| {
            state.approvals.get(&pending.call.id).is_some_and(|question| question.answer.is_none())
        };
        let waits = pending.iter().any(undecided);
        return if waits { Action::Suspend } else { without_results(state, pending, context) };
    }
    match final_answer(answer, since).filter(|_| !has_user_message(since)) {
        Some(answer) => end_of_turn(state, Some(answer)),
        None => within_turn(state, context),
    }
}

/// Whether a user message follows, so that the answer was not the final one.
fn has_user_message(since: &[Arc<Message>]) -> bool {
    since.iter().any(|message| matches!(&**message, Message::User(_)))
}

/// Overdue requests: those of others first, then its own.
fn overdue(state: &TaskState, context: &LimitContext<'_>) -> Option<Action> {
    let expired = state.overdue_requests(context.time);
    if !expired.is_empty() {
        return Some(Action::ExpireRequests(expired));
    }
    let sent =
        state.outbound_requests.iter().filter(|(_, sent)| context.time.has_passed(sent.until));
    let sent: Vec<InteractionId> = sent.map(|(id, _)| *id).collect();
    (!sent.is_empty()).then_some(Action::TimeOutRequests(sent))
}

/// Decides within a turn.
fn within_turn(state: &TaskState, context: &LimitContext<'_>) -> Action {
    let about =
        if state.current_request.is_some() { TurnSubject::Request } else { TurnSubject::Anything };
    take(reading_order::for_steering(&state.queue, about))
        .unwrap_or_else(|| ask_model(state, context))
}

/// Decides at the end of a turn, or before the first one.
fn end_of_turn(state: &TaskState, answer: Option<Value>) -> Action {
    let Some(answer) = answer else {
        return take(reading_order::for_turn(&state.queue)).unwrap_or(Action::Idle);
    };
    if state.current_request.is_some() {
        return Action::AnswerRequest(answer);
    }
    take(reading_order::for_turn(&state.queue)).unwrap_or_else(|| {
        // The task is done when its detached tasks and requests are.
        let waits = !state.detached.is_empty() || !state.outbound_requests.is_empty();
        if waits || state.created.resident { Action::Idle } else { deliver(state, answer) }
    })
}

/// Decides about calls without a result when none of them waits for approval.
fn without_results(
    state: &TaskState,
    pending: Vec<UnansweredCall>,
    context: &LimitContext<'_>,
) -> Action {
    let (waiting, open): (Vec<UnansweredCall>, Vec<UnansweredCall>) =
        pending.into_iter().partition(|pending| state.pending_calls.contains_key(&pending.call.id));
    if !open.is_empty() {
        return Action::CallTools(open);
    }
    let pending_calls = waiting.into_iter().filter_map(|pending| {
        state
            .pending_calls
            .get(&pending.call.id)
            .map(|pending_call| (pending.call.id, pending_call))
    });
    let pending_calls: Vec<(ToolCallId, &PendingCall)> = pending_calls.collect();
    let answered = |pending_call: &PendingCall| match pending_call {
        PendingCall::Request { id, .. } => state.response_to(*id).is_some(),
        PendingCall::Children { .. } | PendingCall::Await { .. } | PendingCall::External { .. } => {
            false
        }
    };
    let over = pending_calls.iter().filter(|(_, pending_call)| {
        pending_call.is_over(context.outcomes, context.time) || answered(pending_call)
    });
    let over: Vec<ToolCallId> = over.map(|(id, _)| id.clone()).collect();
    if !over.is_empty() {
        return Action::CompleteCalls(over);
    }
    let late = |pending_call: &PendingCall| match pending_call {
        PendingCall::External { until, .. } => context.time.has_passed(*until),
        PendingCall::Children { .. } | PendingCall::Await { .. } | PendingCall::Request { .. } => {
            false
        }
    };
    let late = pending_calls.iter().any(|(_, pending_call)| late(pending_call));
    if late && state.waiting_for.is_none() { Action::WaitForClient } else { Action::Suspend }
}

fn unanswered_calls(
    state: &TaskState,
    answer: &AssistantMessage,
    since: &[Arc<Message>],
) -> Vec<UnansweredCall> {
    let open =
        answer.tool_calls().filter(|call| !output::is_final(call) && !is_answered(&call.id, since));
    let interrupted = |call: &ToolCallBlock| state.started.get(&call.id).cloned();
    open.map(|call| UnansweredCall { call: call.clone(), interrupted: interrupted(call) }).collect()
}

/// The result an answer delivers. A `final` call that has a result was rejected.
fn final_answer(answer: &AssistantMessage, since: &[Arc<Message>]) -> Option<Value> {
    let delivers = |call: &&ToolCallBlock| output::is_final(call) && !is_answered(&call.id, since);
    match answer.tool_calls().find(delivers) {
        Some(call) => Some(output::delivered(call)),
        None if answer.tool_calls().next().is_none() => Some(Value::String(answer.text())),
        None => None,
    }
}

fn take(ids: Vec<InteractionId>) -> Option<Action> {
    (!ids.is_empty()).then_some(Action::TakeMessages(ids))
}

fn deliver(state: &TaskState, word: Value) -> Action {
    match output::check(state.created.output_schema.as_ref(), word) {
        Ok(result) => Action::Finish(result),
        Err(_) if state.rejected >= output::REPAIRS_MAX => {
            Action::FailOnLimit(LimitReached::Repairs { max: output::REPAIRS_MAX })
        }
        Err(reason) => Action::RejectOutput(reason),
    }
}

fn ask_model(state: &TaskState, context: &LimitContext<'_>) -> Action {
    if let Some(limit) = limits::reached(state, context) {
        return Action::FailOnLimit(limit);
    }
    match &context.budget {
        None => {}
        Some(BudgetRefusal::PriceUnknown { model }) => {
            return Action::FailOnLimit(LimitReached::PriceUnknown { model: model.clone() });
        }
        Some(BudgetRefusal::Spent(spent)) => {
            let waits = state.waiting_for == Some(WaitingFor::Budget);
            let recorded = waits && spent.is_described_by(state.detail.as_ref());
            return if recorded { Action::Suspend } else { Action::WaitForBudget(spent.clone()) };
        }
    }
    if state.outage.waits(context.time) {
        return Action::WaitForModel;
    }
    if compact::is_due(state, context.window_tokens) {
        return Action::Compact;
    }
    Action::AskModel
}

/// Whether a call has a result.
pub(crate) fn is_answered(id: &ToolCallId, results: &[Arc<Message>]) -> bool {
    results.iter().any(|message| match &**message {
        Message::ToolResult(result) => result.tool_call_id == *id,
        Message::User(_) | Message::Assistant(_) => false,
    })
}
