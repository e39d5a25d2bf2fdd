//! The end of a task: its result, a result that its schema refuses, or the limit that it reached.

use antiphon_core::{
    AgentState, MessageAppended, OutputRejected, StatusChanged, TaskStatus, ToolCallBlock,
    ToolResult, UserMessage, WaitingFor,
};
use serde_json::{Value, json};

use crate::deps::Dispatch;
use crate::inbox::start_agent;
use crate::task::limits::LimitReached;
use crate::task::step::{TaskRun, output};

impl TaskRun {
    pub(crate) fn end(&mut self, status: TaskStatus, detail: Option<Value>) {
        self.ending_from.get_or_insert(self.unwritten.len());
        // The parent orchestrator answers open requests in that case.
        if self.services.deps.settings.dispatch == Dispatch::Here {
            for answer in start_agent::final_replies(&self.state, status) {
                self.push(answer);
            }
        }
        self.push(StatusChanged { detail, ..StatusChanged::new(status) });
    }

    pub(super) fn finish(&mut self, result: Value) {
        self.ending_from = Some(self.unwritten.len());
        self.before_end = None;
        for call in self.final_calls() {
            self.add_result(&call, ToolResult::text("delivered"));
        }
        self.advance_to(AgentState::ToolCall);
        self.advance_to(AgentState::Idle);
        self.end(TaskStatus::Completed, Some(result));
    }

    pub(super) fn reject_output(&mut self, reason: &str) {
        self.push(OutputRejected { reason: reason.to_owned() });
        let text = format!(
            "The result does not fit its schema: {reason}. Call `final` again with a `result` \
             that does."
        );
        let final_calls = self.final_calls();
        for call in &final_calls {
            self.add_result(call, ToolResult::failed(&text));
        }
        if final_calls.is_empty() {
            let now = self.services.deps.clock.now();
            self.push(MessageAppended::new(UserMessage::text(text, now)));
        }
        self.advance_to(AgentState::Idle);
    }

    pub(crate) fn fail_on_limit(&mut self, limit: &LimitReached) {
        let code = match limit {
            LimitReached::Repairs { .. } => "invalid_output",
            LimitReached::Turns { .. }
            | LimitReached::ToolCalls { .. }
            | LimitReached::Tokens { .. }
            | LimitReached::Cost { .. }
            | LimitReached::PriceUnknown { .. }
            | LimitReached::WallClock { .. }
            | LimitReached::Depth { .. }
            | LimitReached::FanOut { .. }
            | LimitReached::Tasks { .. }
            | LimitReached::Handovers { .. } => "limit_reached",
        };
        let mut error = limit.to_string();
        let away = match self.state.waiting_for {
            Some(WaitingFor::Model) => Some("model"),
            Some(WaitingFor::Peer) => Some("peer"),
            Some(
                WaitingFor::Approval
                | WaitingFor::Resume
                | WaitingFor::ToolResult
                | WaitingFor::Budget
                | WaitingFor::Storage,
            )
            | None => None,
        };
        if let Some(away) = away
            && let Some(reason) = self.state.detail.as_ref().and_then(|it| it["error"].as_str())
        {
            error = format!("{error}; it waited for its {away}: {reason}");
        }
        let detail = json!({ "code": code, "error": error, "limit": limit });
        self.end(TaskStatus::Failed, Some(detail));
    }

    /// The calls of the last answer that deliver the result.
    fn final_calls(&self) -> Vec<ToolCallBlock> {
        let last = self.state.last_step();
        let calls = last.into_iter().flat_map(|(answer, _)| answer.tool_calls());
        calls.filter(|call| output::is_final(call)).cloned().collect()
    }
}
