//! Tools of a task: which it may use, and running one call.

use std::sync::Arc;

use antiphon_core::port::ToolContext;
use antiphon_core::{
    CONTROL_REQUEST, Effect, InputBlock, RawJson, TaskCreated, Tool, ToolArguments, ToolCallBlock,
    ToolError, ToolExecutor, ToolResult, ToolResultMessage,
};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// What the model reads about an interrupted call that must not run again.
const OUTCOME_UNKNOWN: &str = "interrupted, outcome unknown: the call was cut off and may or may \
                               not have had its effect. Look before you call it again.";

/// What the model reads after the result of an interrupted call that has happened.
const FOUND: &str =
    "[The call was cut off before its result was recorded. A look found that it had happened.]";

/// The available tools that a task may use. A client's tool of the same name takes precedence.
pub(crate) fn usable(created: &TaskCreated, tools: &dyn ToolExecutor) -> Vec<Arc<Tool>> {
    if created.tools.as_ref().is_some_and(Vec::is_empty) {
        return Vec::new();
    }
    let mut usable = tools.tools();
    let clients = |name: &str| created.external_tools.iter().any(|tool| tool.name == name);
    usable.retain(|tool| may_use(created, &tool.name) && !clients(&tool.name));
    usable
}

/// Whether a task may use a tool of this name. Control requests are only for agents that name the tool.
pub(crate) fn may_use(created: &TaskCreated, name: &str) -> bool {
    match &created.tools {
        Some(tools) => tools.iter().any(|tool| tool == name),
        None => name != CONTROL_REQUEST,
    }
}

/// Runs a call. Failures become results that the model can read. `None` when it was canceled.
pub(crate) async fn run(
    tools: &dyn ToolExecutor,
    call: &ToolCallBlock,
    context: ToolContext,
) -> Option<ToolResult> {
    let arguments = match &call.arguments {
        ToolArguments::Object(json) => json,
        ToolArguments::Malformed(_) => return Some(malformed(call)),
    };
    Some(match tools.execute(&call.name, arguments, context).await {
        Ok(result) => result,
        Err(ToolError::Unknown { name }) => unknown(&tools.tools(), &name),
        Err(error @ (ToolError::InvalidArguments { .. } | ToolError::Unavailable { .. })) => {
            ToolResult::failed(error.to_string())
        }
        Err(ToolError::Canceled) => return None,
    })
}

/// The result of a call of an unknown tool.
pub(crate) fn unknown(known: &[Arc<Tool>], name: &str) -> ToolResult {
    let known: Vec<&str> = known.iter().map(|tool| tool.name.as_str()).collect();
    ToolResult::failed(format!("there is no tool `{name}`, only these: {}", known.join(", ")))
}

/// The result of a call whose arguments are no JSON object.
pub(crate) fn malformed(call: &ToolCallBlock) -> ToolResult {
    let text = match &call.arguments {
        ToolArguments::Object(json) => json.as_str(),
        ToolArguments::Malformed(text) => text,
    };
    ToolResult::failed(format!("the arguments are not a JSON object, nothing was run: {text}"))
}

/// The result of an interrupted call that must not run again, with what is known about it.
pub(crate) fn outcome_unknown(known: &str) -> ToolResult {
    match known {
        "" => ToolResult::failed(OUTCOME_UNKNOWN),
        known => ToolResult::failed(format!("{OUTCOME_UNKNOWN}\n{known}")),
    }
}

/// The result of an interrupted call that has happened, as a look found.
pub(crate) fn found(mut result: ToolResult) -> ToolResult {
    result.content.push(InputBlock::text(FOUND));
    result
}

/// The message that adds a result to the conversation.
pub(crate) fn message(
    call: &ToolCallBlock,
    result: ToolResult,
    timestamp: DateTime<Utc>,
) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: result.content,
        is_error: result.is_error,
        timestamp,
    }
}

/// An executor without tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTools;

#[async_trait]
impl ToolExecutor for NoTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        Vec::new()
    }

    fn effect(&self, _: &str) -> Option<Effect> {
        None
    }

    async fn execute(
        &self,
        tool: &str,
        _: &RawJson,
        _: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        Err(ToolError::Unknown { name: tool.to_owned() })
    }
}
