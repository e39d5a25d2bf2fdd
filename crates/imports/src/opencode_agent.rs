//! Agents of opencode: `.opencode/agent/*.md`.
//!
//! There, a file takes tools away; what it does not mention is allowed. A permission that asks, or that allows some
//! commands only, leaves the tool out.

use antiphon_agent_files::{AgentFileError, ForeignAgent};
use antiphon_core::AgentDefinition;
use serde_json::Value;

use crate::claude_agent::{context, plain_name, read, turns};
use crate::fields::{Fields, description, quoted};
use crate::model_names::{ModelNames, model};
use crate::tool_names;

/// Fields that have no effect here, and why.
const DROPPED: [(&str, &str); 4] = [
    ("mode", "every agent can be called and started"),
    ("temperature", "it is set for a model, not for an agent"),
    ("top_p", "it is set for a model, not for an agent"),
    ("hidden", "every agent is listed"),
];

/// Reads an agent of opencode. `models` finds the model here that a name stands for.
pub fn opencode_agent(
    stem: &str,
    bytes: &[u8],
    models: &ModelNames<'_>,
) -> Result<ForeignAgent, AgentFileError> {
    let (mut fields, body) = read(bytes)?;
    if fields.take("disable") == Some(Value::Bool(true)) {
        return Err(AgentFileError::refused(1, "it is disabled: `disable: true`"));
    }
    let name = plain_name(stem).map_err(|reason| AgentFileError::refused(1, reason))?;
    let mut agent = AgentDefinition::new(name, "");
    agent.description = description(&mut fields, &body)
        .ok_or_else(|| AgentFileError::refused(1, "`description` is missing"))?;
    agent.model = model(&mut fields, models);
    let mut left = None;
    if let Some(switches) = fields.take("tools") {
        by_switches(&mut left, &mut fields, &switches);
    }
    if let Some(permission) = fields.take("permission") {
        by_permission(&mut left, &mut fields, &permission);
    }
    agent.tools = left;
    for field in ["maxSteps", "steps"] {
        turns(&mut agent.limits, &mut fields, field);
    }
    agent.context = context(body)?;
    Ok(ForeignAgent { definition: agent, dropped: fields.finish(&DROPPED) })
}

/// `tools: { write: false }`: a tool that is off is taken away; `*` stands for all.
fn by_switches(left: &mut Option<Vec<String>>, fields: &mut Fields, switches: &Value) {
    let Value::Object(switches) = switches else {
        // A restriction that cannot be read must not become none.
        fields.drop_field("tools", "it is no list of switches: the agent has no tools");
        *left = Some(Vec::new());
        return;
    };
    let off = |value: &Value| *value == Value::Bool(false);
    if switches.get("*").is_some_and(off) {
        let on = switches.iter().filter(|(_, value)| **value == Value::Bool(true));
        let words: Vec<String> = on.map(|(name, _)| name.clone()).collect();
        *left = Some(tool_names::tools(fields, "tools", &words).names);
        return;
    }
    for (name, _) in switches.iter().filter(|(_, value)| !matches!(value, Value::Bool(true))) {
        take_away(left, fields, name);
    }
}

/// `permission: { edit: deny, bash: { "git *": allow } }`: what is not allowed as a whole is taken away.
fn by_permission(left: &mut Option<Vec<String>>, fields: &mut Fields, permission: &Value) {
    let allow = Value::String("allow".to_owned());
    let deny = Value::String("deny".to_owned());
    let Value::Object(by_tool) = permission else {
        if *permission != allow {
            fields.drop_field("permission", "it does not allow every tool: the agent has none");
            *left = Some(Vec::new());
        }
        return;
    };
    for (tool, value) in by_tool {
        let is_whole = match value {
            Value::Object(patterns) => patterns.values().all(|value| *value == allow),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => *value == allow,
        };
        if is_whole {
            continue;
        }
        take_away(left, fields, tool);
        if *value != deny {
            let reason =
                format!("`{}` is left out: a tool is given whole or not at all", quoted(tool));
            fields.drop_field("permission", &reason);
        }
    }
}

fn take_away(left: &mut Option<Vec<String>>, fields: &mut Fields, tool: &str) {
    let tools = left.get_or_insert_with(|| {
        fields
            .drop_field("tools", "some are taken away, so tools of MCP servers are left out, too");
        tool_names::all()
    });
    if tool == "*" {
        tools.clear();
        return;
    }
    // There, `edit` stands for every change of a file.
    let also = ["edit", "write", "patch"].contains(&tool);
    let here = tool_names::here(tool);
    tools
        .retain(|name| Some(name.as_str()) != here && !(also && tool == "edit" && name == "write"));
}
