//! Settings of the user: the user's own file, and the environment.
//!
//! Read once, at the start, into plain values. A file that cannot be parsed is an error that names the
//! line and column. Keys are never printed.

mod a2a;
mod aliases;
mod budget;
mod built_in;
mod chat;
mod context_windows;
mod default_model;
mod edit;
pub mod keys;
pub(crate) mod mcp_json;
mod mcp_server;
mod models;
mod notify;
mod parse;
mod peers;
pub(crate) mod project_file;
mod providers;
mod secrets;
mod shown_text;
mod telemetry;
mod tui;
mod webhooks;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use antiphon_core::{ModelRef, PriceTable, SourceName, SpendLimits};
use antiphon_terminal::TerminalProfile;
use serde::Deserialize;

use crate::environment::Environment;
use crate::error::ProjectError;
use crate::machine_policy::{self, Policy};
use crate::schedules::{ScheduleConfig, Schedules};
pub use a2a::{A2aConfig, RemoteA2a};
pub use aliases::ModelAliases;
use budget::BudgetConfig;
pub use budget::spend_limit;
pub use built_in::PriceSource;
pub(crate) use built_in::built_in_prices;
use built_in::{context_windows, prices};
pub use chat::ChatConfig;
pub use context_windows::ContextWindows;
pub(crate) use default_model::scripted;
pub use default_model::{DefaultModel, KeyModel, no_model};
pub use edit::{SettingsEdit, ShownSetting, save_settings};
pub use mcp_server::McpServerConfig;
pub use models::ModelConfig;
pub use notify::{NotifyConfig, NotifyWhen, TerminalNotice};
pub use parse::CONFIG_VERSION;
use parse::parse;
pub use peers::PeerConfig;
pub(crate) use project_file::server_effect;
pub(crate) use providers::built_in_address;
pub use providers::{Key, Kind, Limits, ProviderConfig};
use providers::{ProviderFile, providers};
pub use shown_text::without_secrets;
pub use telemetry::TelemetryConfig;
pub use tui::{KeyNames, Theme, TuiConfig};
pub use webhooks::{WebhookConfig, WebhookScheme};

/// Largest configuration file.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// The variable that names another configuration file.
const CONFIG_VARIABLE: &str = "ANTIPHON_CONFIG";

/// Everything the user has configured.
#[derive(Debug, Clone)]
pub struct UserSettings {
    /// Path of the configuration file, also when there is none.
    pub path: PathBuf,
    /// Whether the file exists.
    pub found: bool,
    default_model: Option<ModelRef>,
    /// Providers by name, the built-in ones included.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Settings of single models.
    pub models: BTreeMap<ModelRef, ModelConfig>,
    /// Names of models that clients send, and what answers them.
    pub aliases: ModelAliases,
    /// Built-in prices; the user's own replace them.
    pub prices: PriceTable,
    windows: ContextWindows,
    /// Permission mode and rules of agents.
    pub permissions: antiphon_permissions::PermissionConfig,
    /// What sandboxed commands may use beyond the project.
    pub sandbox: SandboxConfig,
    /// MCP servers whose tools agents can use.
    pub mcp: antiphon_mcp::McpConfig,
    /// Names of variables whose values servers of a trusted `.mcp.json` may have.
    pub mcp_json_env: Vec<String>,
    /// Other orchestrators by name.
    pub peers: BTreeMap<String, PeerConfig>,
    /// Programs that agents may run in terminals, by profile name.
    pub terminals: BTreeMap<String, TerminalProfile>,
    /// Events at set times.
    pub schedules: Schedules,
    /// Paths of the user's scripts, by scripted model name.
    pub scripts: BTreeMap<String, PathBuf>,
    /// Where traces are exported to.
    pub telemetry: TelemetryConfig,
    /// Sources of signed events by name.
    pub webhooks: BTreeMap<SourceName, WebhookConfig>,
    /// Agents that are exposed over A2A.
    pub a2a: A2aConfig,
    /// Agents that are exposed over MCP.
    pub mcp_server: McpServerConfig,
    /// Agents that clients of OpenAI's and Anthropic's APIs may name.
    pub chat: ChatConfig,
    /// A task without an agent definition is told that it can make agents, where it can call no other.
    pub ad_hoc_agents: bool,
    /// The terminal program.
    pub tui: TuiConfig,
    /// How the user is told that an agent needs an answer or is done.
    pub notify: NotifyConfig,
    /// Servers of the project's `.mcp.json` that are not used, and why, one line each.
    pub unused_servers: Vec<String>,
    /// Spend limits for the whole project.
    pub budget: SpendLimits,
    /// What the administrator of this machine allows. The settings are within it.
    pub policy: Policy,
    /// The environment the settings were read with.
    pub environment: Environment,
}

/// What sandboxed commands may use beyond the project.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxConfig {
    /// Commands may use the network.
    pub network: bool,
    /// Names of environment variables that commands get in addition to the usual ones.
    pub env: Vec<String>,
    /// Folders beneath `/tmp` or `/run` that commands may read.
    pub readable: Vec<PathBuf>,
    /// Files and folders that commands and file tools may not read, in addition to the usual ones.
    /// Absolute, or beginning with `~/`.
    pub hidden: Vec<PathBuf>,
    /// Commands may open Unix sockets.
    pub unix_sockets: bool,
    /// Most memory of the commands of a task, in MiB. Absent: three quarters of the machine's.
    pub memory_mib: Option<u64>,
    /// Most processes of the commands of a task at a time. Absent: 512.
    pub processes: Option<u64>,
    /// Most MiB by which the commands of a task may fill a disk. Absent: 32 GiB.
    pub disk_mib: Option<u64>,
}

impl SandboxConfig {
    /// Refuses hidden paths that would hide nothing.
    fn checked(self, file: &Path) -> Result<Self, ProjectError> {
        let plain = |path: &PathBuf| {
            let parts = path.components();
            (path.is_absolute() || path.starts_with("~"))
                && parts.into_iter().all(|part| part != Component::ParentDir)
        };
        match self.hidden.iter().find(|path| !plain(path)) {
            None => Ok(self),
            Some(path) => Err(ProjectError::InvalidInput(format!(
                "{}: `sandbox.hidden`: `{}` must be absolute or begin with `~/`, without `..`",
                file.display(),
                path.display()
            ))),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(rename = "version")]
    _version: Option<u32>,
    model: Option<ModelRef>,
    providers: BTreeMap<String, ProviderFile>,
    models: BTreeMap<ModelRef, ModelConfig>,
    aliases: ModelAliases,
    permissions: antiphon_permissions::PermissionConfig,
    sandbox: SandboxConfig,
    mcp: antiphon_mcp::McpConfig,
    mcp_json_env: Vec<String>,
    peers: BTreeMap<String, PeerConfig>,
    terminals: BTreeMap<String, toml::Table>,
    schedules: BTreeMap<String, ScheduleConfig>,
    scripts: BTreeMap<String, PathBuf>,
    telemetry: TelemetryConfig,
    webhooks: BTreeMap<SourceName, WebhookConfig>,
    a2a: A2aConfig,
    mcp_server: McpServerConfig,
    chat: ChatConfig,
    ad_hoc_agents: bool,
    tui: TuiConfig,
    notify: NotifyConfig,
    #[serde(default)]
    budget: BudgetConfig,
}

impl UserSettings {
    /// Reads the user's file and the environment.
    pub fn load(environment: &Environment) -> Result<Self, ProjectError> {
        let path = path(environment);
        let text = read(&path, environment)?;
        let chosen = environment.text("ANTIPHON_MODEL").map(|name| ModelRef::parse(&name));
        let chosen = chosen
            .transpose()
            .map_err(|error| ProjectError::InvalidInput(format!("ANTIPHON_MODEL: {error}")))?;
        Self::of(path, text.as_deref(), chosen, environment)
    }

    /// Reads `path` instead of the user's own file, and ignores `ANTIPHON_MODEL`.
    pub fn load_file(path: &Path, environment: &Environment) -> Result<Self, ProjectError> {
        let text = read(path, environment)?;
        Self::of(path.to_owned(), text.as_deref(), None, environment)
    }

    fn of(
        path: PathBuf,
        text: Option<&str>,
        chosen: Option<ModelRef>,
        environment: &Environment,
    ) -> Result<Self, ProjectError> {
        let file: Option<File> = text.map(|text| parse(&path, text)).transpose()?;
        let (file, found) = (file.unwrap_or_default(), text.is_some());
        let prices = prices(&file.models)?;
        let windows = context_windows(&file.models)?;
        machine_policy::narrow(Self {
            policy: Policy::default(),
            found,
            path: path.clone(),
            windows,
            permissions: file.permissions,
            sandbox: file.sandbox.checked(&path)?,
            mcp: file.mcp,
            mcp_json_env: file.mcp_json_env,
            peers: file.peers,
            terminals: terminals(&path, file.terminals)?,
            schedules: Schedules::from_config(file.schedules).map_err(|error| {
                ProjectError::InvalidInput(format!("{}: {error}", path.display()))
            })?,
            scripts: scripts(&path, file.scripts),
            telemetry: file.telemetry,
            webhooks: file.webhooks,
            a2a: file.a2a,
            mcp_server: file.mcp_server,
            chat: file.chat,
            ad_hoc_agents: file.ad_hoc_agents,
            tui: file.tui,
            notify: file.notify.checked(&path)?,
            unused_servers: Vec::new(),
            budget: file.budget.limits()?,
            default_model: chosen.or(file.model),
            providers: providers(file.providers, environment)?,
            models: file.models,
            aliases: file.aliases,
            prices,
            environment: environment.clone(),
        })
    }

    /// Warns about what the policy or a missing consent keeps from having an effect.
    pub(crate) fn report_unused(&self) {
        let notes = self.policy.narrowed().iter().chain(&self.unused_servers);
        notes.for_each(|note| self.environment.warnings.report(note));
    }

    /// Path of the rules the user always allows: next to the user's file, never in a project.
    pub fn remembered_path(&self) -> PathBuf {
        beside(&self.path)
    }

    /// Sizes of context windows.
    pub fn windows(&self) -> &ContextWindows {
        &self.windows
    }

    /// The default model, if the user has chosen one.
    pub fn chosen_model(&self) -> Option<&ModelRef> {
        self.default_model.as_ref()
    }
}

/// Terminal profiles. A table without `command` changes the built-in profile of that name.
fn terminals(
    path: &Path,
    named: BTreeMap<String, toml::Table>,
) -> Result<BTreeMap<String, TerminalProfile>, ProjectError> {
    let built_in = TerminalProfile::built_in();
    let profile = |(name, table): (String, toml::Table)| {
        let refuse = |reason: String| {
            ProjectError::InvalidInput(format!("{}: [terminals.{name}]: {reason}", path.display()))
        };
        let known = built_in.get(&name).filter(|_| !table.contains_key("command"));
        let mut whole = match known.map(toml::Table::try_from).transpose() {
            Ok(known) => known.unwrap_or_default(),
            Err(error) => return Err(refuse(error.to_string())),
        };
        whole.extend(table);
        let profile: TerminalProfile = whole
            .try_into()
            .map_err(|error: toml::de::Error| refuse(error.message().to_owned()))?;
        Ok((name, profile))
    };
    named.into_iter().map(profile).collect()
}

/// Paths of the user's scripts. A relative path starts at the folder of the user's file.
fn scripts(path: &Path, named: BTreeMap<String, PathBuf>) -> BTreeMap<String, PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    named.into_iter().map(|(name, script)| (name, folder.join(script))).collect()
}

/// Path of the rules that the user always allows.
pub(crate) fn remembered_path(environment: &Environment) -> PathBuf {
    beside(&path(environment))
}

fn beside(settings: &Path) -> PathBuf {
    settings.with_file_name("permissions.toml")
}

/// Path of the user's settings file, also when there is none.
pub fn settings_path(environment: &Environment) -> PathBuf {
    path(environment)
}

fn path(environment: &Environment) -> PathBuf {
    if let Some(path) = environment.path(CONFIG_VARIABLE) {
        // The sandbox hides the file's folder from commands in any folder, so the path is absolute.
        return environment.absolute(&path).unwrap_or(path);
    }
    let nowhere = || PathBuf::from("/nonexistent/antiphon");
    config_folder(environment).unwrap_or_else(nowhere).join("config.toml")
}

/// The user's configuration folder: `antiphon` in `XDG_CONFIG_HOME`, or in `~/.config`. A relative path
/// would depend on the folder that the process runs in, so it is ignored.
pub(crate) fn config_folder(environment: &Environment) -> Option<PathBuf> {
    let home = || environment.home().map(|home| home.join(".config"));
    let folder = environment.absolute_path("XDG_CONFIG_HOME").or_else(home);
    folder.map(|folder| folder.join("antiphon"))
}

/// `None` when there is no such file and the environment names none.
fn read(path: &Path, environment: &Environment) -> Result<Option<String>, ProjectError> {
    let refuse = |reason: String| {
        ProjectError::InvalidInput(format!("cannot read {}: {reason}", path.display()))
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            match environment.path(CONFIG_VARIABLE) {
                Some(_) => Err(refuse(error.to_string())),
                None => Ok(None),
            }
        }
        Err(error) => Err(refuse(error.to_string())),
        Ok(about) if !about.is_file() => Err(refuse("it is not a file".to_owned())),
        Ok(about) if about.len() > CONFIG_BYTES_MAX => {
            Err(refuse(format!("it has more than {CONFIG_BYTES_MAX} bytes")))
        }
        Ok(_) => std::fs::read_to_string(path).map(Some).map_err(|e| refuse(e.to_string())),
    }
}
