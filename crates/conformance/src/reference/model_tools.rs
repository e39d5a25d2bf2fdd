//! Three tools, one for each outcome of a call: `echo` succeeds, `fail` runs and
//! fails, `sleep` runs until it is canceled.
//!
//! A call of any tool that is canceled before it starts does nothing.

use std::pin::pin;
use std::sync::Arc;

use antiphon_core::port::{Cancel, ToolContext, ToolError, ToolExecutor};
use antiphon_core::{Effect, RawJson, Tool, ToolResult};
use async_trait::async_trait;
use futures_util::future::FutureExt;
use serde_json::{Map, Value, json};

const ECHO: &str = "echo";
const FAIL: &str = "fail";
const SLEEP: &str = "sleep";

/// Runs `echo`, `fail` and `sleep`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelTools;

#[async_trait]
impl ToolExecutor for ModelTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        [
            tool(ECHO, "Says the text again.", &["text"]),
            tool(FAIL, "Fails, for the given reason.", &["reason"]),
            tool(SLEEP, "Sleeps until it is woken.", &[]),
        ]
        .map(Arc::new)
        .to_vec()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        match tool {
            ECHO | SLEEP => Some(Effect::ReadOnly),
            FAIL => Some(Effect::SideEffect),
            _ => None,
        }
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if self.effect(tool).is_none() {
            return Err(ToolError::Unknown { name: tool.to_owned() });
        }
        let arguments: Map<String, Value> =
            arguments.to().map_err(|error| invalid(tool, &error.to_string()))?;
        let mut cancel = pin!(context.cancel);
        if cancel.as_mut().now_or_never().is_some() {
            return Err(ToolError::Canceled);
        }
        match tool {
            ECHO => Ok(ToolResult::text(text(tool, &arguments, "text")?)),
            FAIL => Ok(ToolResult::failed(text(tool, &arguments, "reason")?)),
            _ => sleep(tool, &arguments, cancel).await,
        }
    }
}

async fn sleep(
    tool: &str,
    arguments: &Map<String, Value>,
    cancel: std::pin::Pin<&mut Cancel>,
) -> Result<ToolResult, ToolError> {
    if let Some(name) = arguments.keys().next() {
        return Err(invalid(tool, &format!("there is no `{name}`")));
    }
    cancel.await;
    Err(ToolError::Canceled)
}

fn text<'a>(
    tool: &str,
    arguments: &'a Map<String, Value>,
    name: &str,
) -> Result<&'a str, ToolError> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| invalid(tool, &format!("`{name}` must be a text")))
}

fn invalid(tool: &str, reason: &str) -> ToolError {
    ToolError::InvalidArguments { tool: tool.to_owned(), reason: reason.to_owned() }
}

/// A tool whose arguments are texts.
fn tool(name: &str, description: &str, texts: &[&str]) -> Tool {
    let properties: Map<String, Value> =
        texts.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": texts,
        "additionalProperties": false,
    });
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: RawJson::of(&parameters).unwrap_or_else(|_| RawJson::empty_object()),
    }
}
