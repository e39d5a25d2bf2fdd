//! Names of tools in requests. A tool that does not exist is refused by every interface in the same words.

use std::sync::Arc;

use antiphon_core::{ErrorCode, ErrorResponse, Tool};
use antiphon_runtime::Orchestrator;

use crate::request::request_error::refused_field;

/// How the name of a tool of an MCP server begins.
const SERVER_TOOL: &str = "mcp__";

/// Refuses a name in `tools` that neither a tool of the project nor one of the client has.
pub(crate) fn check_tools<'a>(
    orchestrator: &Orchestrator,
    clients: &[Arc<Tool>],
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), ErrorResponse> {
    let is_clients = |name: &str| clients.iter().any(|tool| tool.name == name);
    let mut names = names.into_iter();
    match names.find(|name| !orchestrator.has_tool(name) && !is_clients(name)) {
        Some(name) => Err(unknown_tool(orchestrator, name)),
        None => Ok(()),
    }
}

/// The same for an agent definition. A tool of an MCP server may be there later.
pub(crate) fn check_tools_of_agent<'a>(
    orchestrator: &Orchestrator,
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), ErrorResponse> {
    let names = names.into_iter().filter(|name| !name.starts_with(SERVER_TOOL));
    check_tools(orchestrator, &[], names)
}

fn unknown_tool(orchestrator: &Orchestrator, name: &str) -> ErrorResponse {
    let known: Vec<String> = orchestrator.tools().iter().map(|tool| tool.name.clone()).collect();
    let reason = format!("there is no tool `{name}`; available: {}", known.join(", "));
    let message = format!("`tools`: {reason}");
    ErrorResponse { message, ..refused_field(ErrorCode::DomainViolation, "tools", reason) }
}
