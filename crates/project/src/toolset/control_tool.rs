//! The tool `control_request`: an agent gives control orders as a program outside does, by a request file in the
//! project's folder of requests (docs/file-drop.md). The orchestrator carries it out and answers beside it.
//!
//! An agent has it only when its file names it, and the gate asks a person before each call, unless a rule
//! allows it.

use std::time::Duration;

use antiphon_core::port::ToolContext;
use antiphon_core::{
    CONTROL_REQUEST, Effect, OrchestratorRequest, RawJson, Tool, ToolError, ToolResult,
};
use antiphon_toolbox::{ToolHandler, arguments};
use async_trait::async_trait;
use serde_json::json;

use crate::project::Project;

/// How long the tool waits for the response.
const TIMEOUT: Duration = Duration::from_secs(60);

const DESCRIPTION: &str = "Has the orchestrator start, stop or change an agent. `spawn_agent` needs \
    `name` and `profile` (`native`, or a terminal profile of the user) and creates the agent with \
    `context`, its text or the path of an .md file in the project, if it is unknown; `stop_agent` needs \
    `name`; `update_agent_context` needs `name` and `context`, the new text. A person is asked first.";

/// The tool `control_request`.
pub(crate) struct ControlTool {
    project: Project,
}

impl ControlTool {
    pub(crate) fn new(project: Project) -> Self {
        Self { project }
    }
}

#[async_trait]
impl ToolHandler for ControlTool {
    fn definition(&self) -> Tool {
        let text = json!({ "type": "string" });
        let actions = ["spawn_agent", "stop_agent", "update_agent_context"];
        let parameters = json!({
            "type": "object",
            "properties": {
                "action": { "enum": actions }, "name": text, "profile": text, "context": text,
            },
            "required": ["action", "name"],
            "additionalProperties": false,
        });
        Tool {
            name: CONTROL_REQUEST.to_owned(),
            description: DESCRIPTION.to_owned(),
            parameters: RawJson::of(&parameters).unwrap_or_else(|_| RawJson::empty_object()),
        }
    }

    fn effect(&self) -> Effect {
        Effect::SideEffect
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let request: OrchestratorRequest = arguments(CONTROL_REQUEST, json)?;
        let invalid = |reason: String| ToolError::InvalidArguments {
            tool: CONTROL_REQUEST.to_owned(),
            reason,
        };
        // Only these actions: messages and tasks have tools with limits of their own.
        request.validate().map_err(|error| invalid(error.to_string()))?;
        let unavailable =
            |reason: String| ToolError::Unavailable { tool: CONTROL_REQUEST.to_owned(), reason };
        let folder =
            self.project.trusted_requests().map_err(|error| unavailable(error.to_string()))?;
        let request = serde_json::to_vec(&request).map_err(|error| invalid(error.to_string()))?;
        // Only a server carries out requests from its start.
        self.project.requests_wanted().cancel();
        let ToolContext { agent, cancel, .. } = context;
        let request_drop = self.project.request_drop().get();
        let response = tokio::select! {
            () = cancel => return Err(ToolError::Canceled),
            response = request_drop.submit(folder, &agent, request, TIMEOUT) => response,
        };
        let response = response.map_err(|error| unavailable(error.to_string()))?;
        let text = response.json.to_string();
        Ok(if response.outcome.is_ok() { ToolResult::text(text) } else { ToolResult::failed(text) })
    }
}
