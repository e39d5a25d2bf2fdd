//! What tools of other programs are called here.
//!
//! A tool that is restricted, as `Bash(git:*)`, is left out: an agent here has a tool or has it not, and a tool without
//! its restriction would be more than its file allows.

use antiphon_core::CallableAgents;

use crate::fields::{Fields, quoted};

/// Names of tools of other programs, in lower case, each with its name here.
const NAMES: [(&str, &str); 14] = [
    ("read", "read"),
    ("view", "read"),
    ("bash", "bash"),
    ("edit", "edit"),
    ("multiedit", "edit"),
    ("patch", "edit"),
    ("write", "write"),
    ("grep", "grep"),
    ("glob", "glob"),
    ("list", "glob"),
    ("ls", "glob"),
    ("webfetch", "web_fetch"),
    ("todowrite", "todo"),
    ("skill", "skill"),
];

/// Tools that change nothing and reach nothing outside of the project.
pub(crate) const READING: [&str; 3] = ["read", "grep", "glob"];

/// Tools that call agents.
const CALLING: [&str; 2] = ["task", "agent"];

/// Longest name of a tool, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Most tools of an agent.
const TOOLS_MAX: usize = 64;

/// Tools of an agent, and the agents it may call.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) names: Vec<String>,
    pub(crate) agents: CallableAgents,
}

/// Every tool that has a name here, for a file that only takes tools away.
pub(crate) fn all() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, name) in NAMES {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// The name here of one tool; `None` when there is none.
pub(crate) fn here(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "");
    NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, here)| *here)
}

/// The tools that a file names. What is not available is dropped, and named.
pub(crate) fn tools(fields: &mut Fields, field: &str, words: &[String]) -> Tools {
    let mut tools = Tools::default();
    for word in words {
        if let Err(reason) = tools.add(word) {
            fields.drop_field(field, &format!("{} {reason}", quoted(word)));
        }
    }
    tools
}

impl Tools {
    fn add(&mut self, word: &str) -> Result<(), &'static str> {
        let (name, restriction) = match word.split_once('(') {
            Some((name, rest)) => (name.trim(), Some(rest.trim_end_matches(')').trim())),
            None => (word, None),
        };
        if CALLING.contains(&name.to_ascii_lowercase().as_str()) {
            self.call(restriction);
            return Ok(());
        }
        if word == "*" {
            return Err("is no name of a tool: name each");
        }
        let is_whole = restriction.is_none_or(|pattern| ["", "*", ":*"].contains(&pattern));
        if !is_whole {
            return Err("is left out: a tool is given whole or not at all");
        }
        let name = here(name).map(str::to_owned).or_else(|| mcp_tool(name));
        let name = name.ok_or("is not available")?;
        if self.names.len() >= TOOLS_MAX {
            return Err("is left out: there are too many tools");
        }
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        Ok(())
    }

    /// `Task` calls every agent, `Task(a, b)` these.
    fn call(&mut self, restriction: Option<&str>) {
        let Some(names) = restriction.filter(|names| !names.is_empty()) else {
            self.agents = CallableAgents::Any;
            return;
        };
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names = names.filter_map(|name| antiphon_core::AgentName::parse(name).ok());
        match &mut self.agents {
            CallableAgents::Any => {}
            CallableAgents::Only(known) => known.extend(names.map(String::from)),
        }
    }
}

/// `mcp__SERVER__TOOL` has the same name here.
fn mcp_tool(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    let is_plain = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    (is_plain(server) && is_plain(tool) && name.len() <= NAME_BYTES_MAX).then(|| name.to_owned())
}
