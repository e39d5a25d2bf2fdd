//! An agent as the text of a file of ours.

use std::fmt::Write as _;

use antiphon_core::{AgentDefinition, CallableAgents};
use serde_json::json;

/// The text of the file of an agent that was imported from `source`. Values are written as JSON, which is YAML too.
pub fn agent_text(agent: &AgentDefinition, source: &str) -> String {
    let source = antiphon_core::escaped(source);
    let mut text = format!("---\n# Imported from {source}\n");
    let mut field = |name: &str, value: serde_json::Value| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}: {value}");
    };
    field("name", json!(agent.name));
    field("description", json!(agent.description));
    if let Some(model) = &agent.model {
        field("model", json!(model.to_string()));
    }
    if let Some(tools) = &agent.tools {
        field("tools", json!(tools));
    }
    match &agent.agents {
        CallableAgents::Any => field("agents", json!("any")),
        CallableAgents::Only(names) if names.is_empty() => {}
        CallableAgents::Only(names) => field("agents", json!(names)),
    }
    if let Some(turns) = agent.limits.turns_max {
        field("limits", json!({ "turns": turns }));
    }
    text + "---\n" + &agent.context + "\n"
}
