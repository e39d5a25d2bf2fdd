//! Tools that a client runs itself: the call is recorded as an event, and the client sends the
//! result. Until then the task is suspended; when it takes too long, the task is reported as waiting.

use std::sync::Arc;

use antiphon_core::{
    EventBody, InputBlock, MessageAppended, StatusChanged, TaskStatus, TaskSummary, Tool,
    ToolCallBlock, ToolCallId, ToolRequested, ToolResult, ToolResultMessage, WaitingFor,
};
use chrono::{DateTime, Utc};

use crate::dispatch::pending_call::PendingCall;
use crate::dispatch::supervisor_tools;
use crate::inbox::peer_tools;
use crate::orchestrator_error::OrchestratorError;
use crate::task::control::new_task::NewTask;
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::state::TaskState;
use crate::task::step::TaskRun;
use crate::task::step::output;
use crate::task::step::tools;

/// Maximum number of tools that one client may offer.
pub const EXTERNAL_TOOLS_MAX: usize = 512;

/// Longest result of a client's tool, in bytes.
pub const EXTERNAL_RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Leaves out what a runner has itself. In a task here, a client's tool takes the place of ours of the same name
/// ([`tools::usable`]); children have ours.
pub(crate) fn leave_out_those_of_runner(task: &mut NewTask, ours: &[Arc<Tool>]) {
    if task.runner.is_some() {
        task.external_tools.retain(|tool| !ours.iter().any(|own| own.name == tool.name));
    }
}

/// Checks the names of a client's tools. Those of tools to reach other agents are taken if the task may call agents.
pub(crate) fn check(task: &NewTask) -> Result<(), OrchestratorError> {
    let offered = &task.external_tools;
    let refuse = |tool: &Tool, reason: &str| {
        let (tool, reason) = (tool.name.clone(), reason.to_owned());
        Err(OrchestratorError::BadTool { tool, reason })
    };
    for (index, tool) in offered.iter().enumerate() {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if tool.name.is_empty() || tool.name.len() > 64 || !tool.name.chars().all(letters) {
            return refuse(tool, "a name has 1 to 64 letters, digits, `_` and `-`");
        }
        if index >= EXTERNAL_TOOLS_MAX {
            return refuse(tool, &format!("a client may offer {EXTERNAL_TOOLS_MAX} tools"));
        }
        let is_ours =
            !task.agents.allows_none() && orchestrates(&tool.name) || tool.name == output::FINAL;
        if is_ours || offered[..index].iter().any(|other| other.name == tool.name) {
            return refuse(tool, "a tool of that name exists");
        }
    }
    Ok(())
}

fn orchestrates(name: &str) -> bool {
    supervisor_tools::is_ours(name)
        || peer_tools::is_peer_tool(name)
        || peer_tools::is_reply_tool(name)
}

impl TaskRun {
    /// Whether a client runs this tool.
    pub(crate) fn is_external(&self, name: &str) -> bool {
        let created = &self.state.created;
        let offered = created.external_tools.iter().any(|tool| tool.name == name);
        offered && tools::may_use(created, name)
    }

    /// Records that the client has to run a call.
    pub(crate) fn request_result(&mut self, call: &ToolCallBlock) {
        let Some(arguments) = call.arguments.object() else {
            let result = tools::malformed(call);
            self.add_result(call, result);
            return;
        };
        let patience = self.services.deps.settings.client_tool_timeout;
        let patience = chrono::TimeDelta::from_std(patience).unwrap_or(chrono::TimeDelta::MAX);
        let until = self.services.deps.clock.now() + patience;
        let tool_name = call.name.clone();
        self.wait_for_call(&PendingCall::External { tool_name, until });
        self.push(ToolRequested {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            arguments: arguments.clone(),
            until,
            boot_until: self.services.time.boot_until(until),
        });
    }
}

/// The events for a result that a client sent.
pub(crate) fn answer(
    state: &TaskState,
    summary: &TaskSummary,
    tool_call_id: &ToolCallId,
    result: &ToolResult,
    now: DateTime<Utc>,
    time: &DeadlineClock,
) -> Result<Vec<EventBody>, OrchestratorError> {
    let bytes = result.content.iter().map(length).sum();
    if bytes > EXTERNAL_RESULT_BYTES_MAX {
        let max = EXTERNAL_RESULT_BYTES_MAX;
        return Err(OrchestratorError::ResultTooLong { max, bytes });
    }
    let none = || OrchestratorError::NoSuchCall {
        task_id: state.task_id.clone(),
        tool_call_id: tool_call_id.clone(),
    };
    let Some(PendingCall::External { tool_name, .. }) = state.pending_calls.get(tool_call_id)
    else {
        return Err(none());
    };
    let message = ToolResultMessage {
        tool_call_id: tool_call_id.clone(),
        tool_name: tool_name.clone(),
        content: result.content.clone(),
        is_error: result.is_error,
        timestamp: now,
    };
    let mut events = vec![MessageAppended::new(message).into()];
    let late = |(id, pending_call): (&ToolCallId, &PendingCall)| match pending_call {
        PendingCall::External { until, .. } => id != tool_call_id && time.has_passed(*until),
        PendingCall::Children { .. } | PendingCall::Await { .. } | PendingCall::Request { .. } => {
            false
        }
    };
    if summary.waiting_for == Some(WaitingFor::ToolResult) && !state.pending_calls.iter().any(late)
    {
        events.push(StatusChanged::new(TaskStatus::Running).into());
    }
    Ok(events)
}

fn length(block: &InputBlock) -> usize {
    match block {
        InputBlock::Text(text) => text.text.len(),
        InputBlock::Image(image) => image.data().len(),
    }
}
