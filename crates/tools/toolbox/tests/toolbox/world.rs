//! Contexts of calls, and results as text.

use antiphon_core::port::ToolContext;
use antiphon_core::{Cancel, InputBlock, TaskId, ToolCallId, ToolError, ToolResult};

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Text(String),
    Failed(String),
    Error(ToolError),
}

impl Outcome {
    pub(crate) fn of(result: Result<ToolResult, ToolError>) -> Self {
        match result {
            Ok(result) if result.is_error => Self::Failed(text_of(&result)),
            Ok(result) => Self::Text(text_of(&result)),
            Err(error) => Self::Error(error),
        }
    }

    #[track_caller]
    pub(crate) fn text(self) -> String {
        let Self::Text(text) = self else { panic!("{self:?}") };
        text
    }

    #[track_caller]
    pub(crate) fn failed(self) -> String {
        let Self::Failed(text) = self else { panic!("{self:?}") };
        text
    }
}

pub(crate) fn context(task: &str, call: &str) -> ToolContext {
    ToolContext {
        task_id: TaskId::parse(task).unwrap(),
        tool_call_id: ToolCallId::parse(call).unwrap(),
        ..ToolContext::trial(Cancel::never())
    }
}

pub(crate) fn text_of(result: &ToolResult) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(block) => block.text.clone(),
        InputBlock::Image(image) => {
            format!("<{} of {} bytes>", image.mime_type(), image.data().len())
        }
    };
    result.content.iter().map(text).collect::<Vec<_>>().join("\n")
}
