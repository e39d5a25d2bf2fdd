//! Three harmless tools, and a gate that asks before one of them.

use std::sync::Arc;

use antiphon_core::port::{Gate, GateRequest, GateVerdict, Rule, ToolContext};
use antiphon_core::{Effect, RawJson, Tool, ToolError, ToolExecutor, ToolResult};
use async_trait::async_trait;

const NAMES: [&str; 3] = ["look", "act", "hang"];

/// `look` and `act` return their arguments; `hang` runs until it is canceled.
pub struct TestTools;

#[async_trait]
impl ToolExecutor for TestTools {
    fn tools(&self) -> Vec<Arc<Tool>> {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: name.to_owned(),
            parameters: RawJson::parse(r#"{"type":"object"}"#).unwrap(),
        };
        NAMES.map(|name| tool(name).into()).into()
    }

    fn effect(&self, tool: &str) -> Option<Effect> {
        NAMES.contains(&tool).then_some(Effect::ReadOnly)
    }

    async fn execute(
        &self,
        tool: &str,
        arguments: &RawJson,
        context: ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if tool == "hang" {
            context.cancel.await;
            return Err(ToolError::Canceled);
        }
        Ok(ToolResult::text(format!("{tool} {arguments}: done")))
    }
}

/// Asks before `act`, unless the task already has the permission. Allows every other tool.
pub struct AskBeforeAct;

#[async_trait]
impl Gate for AskBeforeAct {
    fn judge(&self, call: &GateRequest<'_>) -> GateVerdict {
        let rule = Rule("act".to_owned());
        if call.tool == "act" && !call.granted.contains(&rule) {
            return GateVerdict::Ask { reason: "It acts.".to_owned(), rule };
        }
        GateVerdict::Allow
    }

    async fn remember(&self, _: &Rule) -> Result<(), String> {
        Ok(())
    }
}
