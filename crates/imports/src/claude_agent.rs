//! Agents of Claude Code: `.claude/agents/*.md`.

use std::num::NonZeroU32;

use antiphon_agent_files::{AgentFileError, ForeignAgent, LenientFile};
use antiphon_core::{AgentDefinition, AgentName, CONTEXT_BYTES_MAX, TaskLimits};

use crate::fields::{Fields, description, quoted};
use crate::model_names::{ModelNames, model};
use crate::tool_names::{self, READING};

/// Fields that have no effect here, and why.
const DROPPED: [(&str, &str); 6] = [
    ("hooks", "its commands are never run"),
    ("mcpServers", "its servers are not used: configure them in `.mcp.json`"),
    ("memory", "agents here share the memory of the project"),
    ("isolation", "no work tree is made"),
    ("skills", "its skills are not put into its context: it has the tool `skill`"),
    ("background", "its caller says so, with the join `detached`"),
];

/// Reads an agent of Claude Code. `models` finds the model here that a name stands for.
pub fn claude_agent(
    stem: &str,
    bytes: &[u8],
    models: &ModelNames<'_>,
) -> Result<ForeignAgent, AgentFileError> {
    let (mut fields, body) = read(bytes)?;
    let name = agent_name(stem, &mut fields)?;
    let mut agent = AgentDefinition::new(name, "");
    agent.description = description(&mut fields, &body)
        .ok_or_else(|| AgentFileError::refused(1, "`description` is missing"))?;
    agent.model = model(&mut fields, models);
    if let Some(words) = fields.words("tools") {
        let tools = tool_names::tools(&mut fields, "tools", &words);
        (agent.tools, agent.agents) = (Some(tools.names), tools.agents);
    }
    if let Some(words) = fields.words("disallowedTools") {
        take_away(&mut agent, &mut fields, &words);
    }
    permission_mode(&mut agent, &mut fields);
    turns(&mut agent.limits, &mut fields, "maxTurns");
    agent.context = context(body)?;
    Ok(ForeignAgent { definition: agent, dropped: fields.finish(&DROPPED) })
}

/// Front matter and body. A file without front matter is no agent of another program.
pub(crate) fn read(bytes: &[u8]) -> Result<(Fields, String), AgentFileError> {
    let file = LenientFile::read(bytes)?;
    let fields = file.fields.ok_or_else(|| {
        AgentFileError::refused(1, "it has no front matter, so it is no agent: see docs/import.md")
    })?;
    Ok((Fields::new(fields), file.body))
}

pub(crate) fn context(body: String) -> Result<String, AgentFileError> {
    if body.is_empty() {
        return Err(AgentFileError::refused(1, "nothing follows the front matter"));
    }
    if body.len() > CONTEXT_BYTES_MAX {
        let reason = format!("its text has more than {CONTEXT_BYTES_MAX} bytes");
        return Err(AgentFileError::refused(1, reason));
    }
    Ok(body)
}

/// The name of the file, or the field `name` if that can be a name here. A name with blanks or capitals is
/// written with `-` and in lower case, as commands take it.
fn agent_name(stem: &str, fields: &mut Fields) -> Result<AgentName, AgentFileError> {
    if let Some(given) = fields.text("name") {
        match plain_name(&given) {
            Ok(name) => return Ok(name),
            Err(reason) => {
                let reason = format!("{} cannot name an agent: {reason}", quoted(&given));
                fields.drop_field("name", &reason);
            }
        }
    }
    plain_name(stem).map_err(|reason| AgentFileError::refused(1, reason))
}

/// A name that commands take without quotes.
pub(crate) fn plain_name(text: &str) -> Result<AgentName, String> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase();
    AgentName::parse(&plain).map_err(|error| error.to_string())
}

/// Takes tools away. Of all tools of a caller, those stay that have a name here.
fn take_away(agent: &mut AgentDefinition, fields: &mut Fields, words: &[String]) {
    let mut left = agent.tools.take().unwrap_or_else(|| {
        fields.drop_field("disallowedTools", "tools of MCP servers are left out, too");
        tool_names::all()
    });
    for word in words {
        // A tool that may not be used in part is not used at all.
        let name = word.split('(').next().unwrap_or(word);
        let here = tool_names::here(name).unwrap_or(name);
        left.retain(|tool| tool != here);
        if ["task", "agent"].contains(&name.to_ascii_lowercase().as_str()) {
            agent.agents = antiphon_core::CallableAgents::default();
        }
    }
    agent.tools = Some(left);
}

/// A mode never gives more. `plan` only reads.
fn permission_mode(agent: &mut AgentDefinition, fields: &mut Fields) {
    let Some(mode) = fields.text("permissionMode") else { return };
    if mode == "plan" {
        let reading = |tool: &String| READING.contains(&tool.as_str());
        let tools = agent.tools.take().unwrap_or_else(tool_names::all);
        agent.tools = Some(tools.into_iter().filter(reading).collect());
        agent.agents = antiphon_core::CallableAgents::default();
        return;
    }
    let reason = format!("{} is not used: permissions are those of its caller", quoted(&mode));
    fields.drop_field("permissionMode", &reason);
}

/// A limit of turns.
pub(crate) fn turns(limits: &mut TaskLimits, fields: &mut Fields, field: &str) {
    let Some(text) = fields.text(field) else { return };
    match text.parse::<NonZeroU32>() {
        Ok(turns) => limits.turns_max = Some(turns),
        Err(_) => fields.drop_field(field, "it is no number of turns"),
    }
}
