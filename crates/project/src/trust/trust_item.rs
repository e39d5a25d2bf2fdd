//! Parts of a project that need trust, with the effect of each.

use antiphon_agent_files::{AgentCatalog, AgentFileEntry, Folder, version_of};
use antiphon_core::port::PromptSource;
use antiphon_core::{AgentDefinition, CallableAgents, Runtime};
use serde::Serialize;

use super::record::{Pin, TrustRecord};
use super::{ProjectTrust, only_reads};
use crate::control_orders::REQUEST_FOLDERS;
use crate::error::{ProjectError, unusable};
use crate::settings::project_file;

/// Folder of a project's agents, below its root.
const AGENTS: &str = ".antiphon/agents";

/// Most requests that are counted.
const REQUESTS_MAX: usize = 1000;

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
}

impl TrustItemKind {
    /// The kind in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Agent => "agent",
            Self::Requests => "requests",
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

fn agent_effects(agent: &AgentDefinition) -> Vec<String> {
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
