//! Parts of a project that need trust, with the effect of each.

use std::path::PathBuf;

use antiphon_agent_files::{AgentCatalog, AgentFileEntry, Folder, version_of};
use antiphon_core::port::PromptSource;
use antiphon_core::{AgentDefinition, CallableAgents, Runtime};
use antiphon_imports::PromptCommand;
use serde::Serialize;

use super::record::{Pin, TrustRecord};
use super::{ProjectTrust, only_reads};
use crate::agent_files::foreign_folders::unconfigured_project_folders;
use crate::control_orders::REQUEST_FOLDERS;
use crate::error::{ProjectError, unusable};
use crate::prompt_commands;
use crate::settings::mcp_json::{self, ReadServer};
use crate::settings::project_file::{self, server_effect};
use crate::skills::{self, FoundSkill};

/// Folder of a project's agents, below its root.
const AGENTS: &str = ".antiphon/agents";

/// Most requests that are counted.
const REQUESTS_MAX: usize = 1000;

/// Most characters of a skill's description that are shown.
const SHOWN_CHARS_MAX: usize = 200;

/// A file or folder of a project that has an effect only when the user trusts it.
#[derive(Debug, Clone, Serialize)]
pub struct TrustItem {
    /// What it is.
    pub kind: TrustItemKind,
    /// Its path below the project's root.
    pub path: String,
    /// Whether it has an effect.
    pub status: TrustStatus,
    /// What it would do, one line each.
    pub effects: Vec<String>,
    #[serde(skip)]
    pub(super) pin: Pin,
}

/// What a project can bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustItemKind {
    /// Its settings file.
    Settings,
    /// An agent whose tools go beyond reading.
    Agent,
    /// A folder of control requests.
    Requests,
    /// MCP servers that other programs use.
    McpServers,
    /// A command: a prompt.
    Command,
    /// A skill: instructions that an agent loads, with the files of their folder.
    Skill,
}

impl TrustItemKind {
    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Agent => "agent",
            Self::Requests => "requests",
            Self::McpServers => "mcp servers",
            Self::Command => "command",
            Self::Skill => "skill",
        }
    }
}

/// Whether a file or folder of the project has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustStatus {
    /// It has.
    Trusted,
    /// The user has not trusted it: it has none.
    NotTrusted,
    /// It is not what the user trusted: it has none.
    Changed,
}

impl TrustStatus {
    /// The status in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::NotTrusted => "not trusted",
            Self::Changed => "changed",
        }
    }
}

impl ProjectTrust {
    /// Everything in the project that has an effect only when it is trusted.
    pub fn items(&self) -> Result<Vec<TrustItem>, ProjectError> {
        let record = TrustRecord::read(&self.state)
            .map_err(|error| unusable(&TrustRecord::path(&self.state), &error))?;
        let mut items: Vec<TrustItem> = self.settings(&record).into_iter().collect();
        items.extend(self.agents(&record));
        let folders = REQUEST_FOLDERS.into_iter();
        items.extend(folders.filter_map(|path| self.requests(path, &record)));
        items.extend(self.mcp_servers(&record));
        items.extend(self.foreign_agents(&record));
        items.extend(self.commands(&record));
        items.extend(self.skills(&record));
        Ok(items)
    }

    /// A file that cannot be read brings nothing.
    fn settings(&self, record: &TrustRecord) -> Option<TrustItem> {
        let content = project_file::read(&self.root).ok().flatten()?;
        let pin = Pin::Content(version_of(content.as_bytes()));
        let effects = match project_file::parse(&self.root, &content) {
            Ok(file) => file.effects(),
            Err(error) => vec![error.to_string()],
        };
        let path = project_file::PATH;
        Some(item(TrustItemKind::Settings, path.to_owned(), effects, pin, record))
    }

    fn agents(&self, record: &TrustRecord) -> Vec<TrustItem> {
        let folder = Folder::project(self.root.join(AGENTS));
        let catalog = AgentCatalog::open(vec![folder], |_: PromptSource<'_>| String::new());
        let wider = catalog.entries().into_iter().filter(|entry| !only_reads(&entry.definition));
        let agent = |entry: AgentFileEntry| {
            let (path, pin) = (self.relative(&entry.path), Pin::Content(entry.version));
            item(TrustItemKind::Agent, path, agent_effects(&entry.definition), pin, record)
        };
        wider.map(agent).collect()
    }

    /// Agents of other programs: all of them, also those that only read.
    fn foreign_agents(&self, record: &TrustRecord) -> Vec<TrustItem> {
        let agent = |entry: AgentFileEntry| {
            let (path, pin) = (self.relative(&entry.path), Pin::Content(entry.version));
            item(TrustItemKind::Agent, path, agent_effects(&entry.definition), pin, record)
        };
        let folders = unconfigured_project_folders(&self.root).into_iter();
        let catalog =
            |folder| AgentCatalog::open(vec![folder], |_: PromptSource<'_>| String::new());
        folders.flat_map(|folder| catalog(folder).entries()).map(agent).collect()
    }

    fn commands(&self, record: &TrustRecord) -> Vec<TrustItem> {
        let command = |(name, path, version, command): (String, PathBuf, String, PromptCommand)| {
            let (path, pin) = (self.relative(&path), Pin::Content(version));
            item(TrustItemKind::Command, path, command.effects(&name), pin, record)
        };
        prompt_commands::brought(&self.root).into_iter().map(command).collect()
    }

    fn skills(&self, record: &TrustRecord) -> Vec<TrustItem> {
        let skill = |found: FoundSkill| {
            let (path, pin) = (self.relative(&found.path), Pin::Content(found.version().ok()?));
            let effects = vec![
                format!("instructions that agents can load as the skill {}", found.name),
                found.description.chars().take(SHOWN_CHARS_MAX).collect(),
            ];
            Some(item(TrustItemKind::Skill, path, effects, pin, record))
        };
        skills::brought(&self.root).into_iter().filter_map(skill).collect()
    }

    /// A file that cannot be read brings nothing.
    fn mcp_servers(&self, record: &TrustRecord) -> Option<TrustItem> {
        let text = mcp_json::read(&self.root).ok().flatten()?;
        let effect = |server: ReadServer| match server.config {
            Ok((name, config)) => server_effect(name.as_str(), &config),
            Err(reason) => format!("MCP server `{}` is not used: {reason}", server.name),
        };
        let effects = match mcp_json::as_written(&text) {
            Ok(servers) if servers.is_empty() => return None,
            Ok(servers) => servers.into_iter().map(effect).collect(),
            Err(reason) => vec![reason],
        };
        let pin = Pin::Content(version_of(text.as_bytes()));
        let path = mcp_json::PATH.to_owned();
        Some(item(TrustItemKind::McpServers, path, effects, pin, record))
    }

    fn requests(&self, path: &str, record: &TrustRecord) -> Option<TrustItem> {
        let folder = self.root.join(path);
        let pin = Pin::Folder(self.folder_identity(&folder).ok()?);
        let waiting = match self.request_drop.get().count_waiting(&folder, REQUESTS_MAX) {
            0 => "no request waits".to_owned(),
            1 => "1 request waits".to_owned(),
            REQUESTS_MAX => format!("{REQUESTS_MAX} requests or more wait"),
            count => format!("{count} requests wait"),
        };
        let effects = vec![
            "a file that is dropped there starts tasks, and starts, changes and stops agents"
                .to_owned(),
            waiting,
        ];
        Some(item(TrustItemKind::Requests, path.to_owned(), effects, pin, record))
    }
}

fn item(
    kind: TrustItemKind,
    path: String,
    effects: Vec<String>,
    pin: Pin,
    record: &TrustRecord,
) -> TrustItem {
    let status = if record.trusts(&path, &pin) {
        TrustStatus::Trusted
    } else if record.knows(&path) {
        TrustStatus::Changed
    } else {
        TrustStatus::NotTrusted
    };
    TrustItem { kind, path, status, effects, pin }
}

pub(crate) fn agent_effects(agent: &AgentDefinition) -> Vec<String> {
    let mut effects = vec![match &agent.tools {
        None => "every tool".to_owned(),
        Some(tools) => format!("tools: {}", tools.join(", ")),
    }];
    match &agent.agents {
        CallableAgents::Any => effects.push("calls every agent".to_owned()),
        CallableAgents::Only(names) if names.is_empty() => {}
        CallableAgents::Only(names) => effects.push(format!("calls {}", names.join(", "))),
    }
    let runners = agent.runtimes.iter().filter_map(|runtime| match runtime {
        Runtime::Local => None,
        Runtime::Runner(runner) => Some(format!("runs on `{}`", runner.kind)),
    });
    effects.extend(runners);
    effects.extend(agent.model.iter().map(|model| format!("model {model}")));
    effects
}
