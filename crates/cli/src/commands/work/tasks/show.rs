//! `antiphon tasks show`: one task with its conversation.

use std::sync::Arc;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{
    Message, Plan, PriceTable, TaskAccess, TaskStatus, TaskSummary, TodoItem, TokenUsage,
};
use antiphon_runtime::TaskState;
use antiphon_view::conversation_text;
use antiphon_view::display::escaped;
use antiphon_view::{
    Colors, outage_wait_text, peer_wait_text, plan_lines, status_word, todo_lines,
};
use serde::Serialize;

use super::listed_task::{ListedTask, listed_task};
use crate::failure::Failure;
use crate::outcome;
use crate::terminal;

/// One task in JSON, with its conversation.
#[derive(Serialize)]
struct FullRow<'a> {
    #[serde(flatten)]
    row: ListedTask<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a Plan>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    todo: &'a [TodoItem],
    /// All messages, those before the task included.
    conversation: &'a [Arc<Message>],
}

pub(super) fn describe(
    state: &TaskState,
    summary: &TaskSummary,
    prices: &PriceTable,
    json: bool,
) -> Result<(), Failure> {
    if json {
        let (detail, conversation) = (state.detail.as_ref(), state.messages());
        let (plan, todo) = (state.plan.as_ref(), &*state.todo);
        let row = listed_task(summary, prices);
        let detailed = FullRow { row, detail, plan, todo, conversation };
        terminal::print(&terminal::json(&detailed)?);
        return Ok(());
    }
    let tokens = TokenUsage::from(state.usage());
    let mut text = format!(
        "task {}, {}, {}, {} + {} tokens, {}\n",
        state.task_id,
        status_word(summary),
        terminal::count(u64::from(state.turns), "turn"),
        tokens.prompt_tokens,
        tokens.completion_tokens,
        outcome::cost(&state.spent, prices),
    );
    if !summary.runs_on.is_local() {
        text.extend(["runs on ", &escaped(&summary.runs_on.to_string()), "\n"]);
    }
    let error = state.detail.as_ref().and_then(|detail| detail["error"].as_str());
    if let Some(error) = error.filter(|_| state.created.cancels.is_some()) {
        text.extend([error, "\n"]);
    }
    if let Some(error) = error.filter(|_| state.status == TaskStatus::Failed) {
        text.extend(["failed: ", error, "\n"]);
    }
    if let Some(wait) = &summary.wait {
        let (wait, id) = (outage_wait_text(wait), &state.task_id);
        let lines = format!("{wait}\ntry again at once with `antiphon tasks resume {id}`\n");
        text.push_str(&lines);
    }
    if let Some(held) = peer_wait_text(summary) {
        text.extend([&*held, "\n"]);
    }
    if state.handovers > 0 {
        let times = terminal::count(u64::from(state.handovers), "handover");
        text.extend(["now with ", &escaped(&state.created.agent), ", after ", &times, "\n"]);
    }
    if state.access == TaskAccess::PlanFirst && state.plan.is_none() {
        text.push_str("reads only until you accept its plan\n");
    }
    let plan = state.plan.as_ref();
    let plan = plan.map(|plan| plan_lines(plan, Colors::Off, usize::MAX)).unwrap_or_default();
    for line in plan.into_iter().chain(todo_lines(&state.todo, Colors::Off)) {
        text.extend([&*line, "\n"]);
    }
    text.push_str(&conversation_text::conversation(&state.created.system_prompt, state.messages()));
    for queued in &state.queue {
        text.push_str(&conversation_text::queued(&queued.user_message(SystemClock.now())));
    }
    terminal::print(&text);
    Ok(())
}
