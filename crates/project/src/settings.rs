//! What the user has configured: the user's own file, and the environment.
//!
//! Read once, at the start, into plain values. A file that cannot be parsed is an error that names the
//! line. Keys are never printed.

mod a2a;
mod aliases;
mod budget;
mod context_windows;
mod mcp_server;
mod models;
mod peers;
pub(crate) mod project_file;
mod providers;
mod secrets;
mod telemetry;
mod tui;
mod webhooks;

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use antiphon_core::{ModelRef, PriceTable, SourceName, SpendLimits};
use antiphon_terminal::TerminalProfile;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::environment::Environment;
use crate::error::ProjectError;
use crate::policy::{self, Policy};
use crate::schedules::{ScheduleConfig, Schedules};
pub use a2a::{A2aConfig, RemoteA2a};
pub use aliases::ModelAliases;
use budget::BudgetConfig;
pub use budget::spend_limit;
pub use context_windows::ContextWindows;
pub use mcp_server::McpServerConfig;
pub use models::ModelConfig;
pub use peers::PeerConfig;
pub(crate) use providers::built_in_address;
pub use providers::{Key, Kind, Limits, ProviderConfig};
use providers::{ProviderFile, providers};
pub use telemetry::TelemetryConfig;
pub use tui::{KeyNames, Theme, TuiConfig};
pub use webhooks::{WebhookConfig, WebhookScheme};

/// Built-in prices.
const PRICES: &str = include_str!("../data/prices.toml");

/// Built-in context windows.
const WINDOWS: &str = include_str!("../data/windows.toml");

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
    /// The terminal program.
    pub tui: TuiConfig,
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
    model: Option<ModelRef>,
    providers: BTreeMap<String, ProviderFile>,
    models: BTreeMap<ModelRef, ModelConfig>,
    aliases: ModelAliases,
    permissions: antiphon_permissions::PermissionConfig,
    sandbox: SandboxConfig,
    mcp: antiphon_mcp::McpConfig,
    peers: BTreeMap<String, PeerConfig>,
    terminals: BTreeMap<String, toml::Table>,
    schedules: BTreeMap<String, ScheduleConfig>,
    scripts: BTreeMap<String, PathBuf>,
    telemetry: TelemetryConfig,
    webhooks: BTreeMap<SourceName, WebhookConfig>,
    a2a: A2aConfig,
    mcp_server: McpServerConfig,
    tui: TuiConfig,
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
        policy::narrow(Self {
            policy: Policy::default(),
            found,
            path: path.clone(),
            windows,
            permissions: file.permissions,
            sandbox: file.sandbox.checked(&path)?,
            mcp: file.mcp,
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
            tui: file.tui,
            budget: file.budget.limits()?,
            default_model: chosen.or(file.model),
            providers: providers(file.providers, environment)?,
            models: file.models,
            aliases: file.aliases,
            prices,
            environment: environment.clone(),
        })
    }

    /// Path of the rules the user always allows: next to the user's file, never in a project.
    pub fn remembered_path(&self) -> PathBuf {
        beside(&self.path)
    }

    /// Sizes of context windows.
    pub fn windows(&self) -> &ContextWindows {
        &self.windows
    }

    /// The model of a task that names none: the user's choice, or `scripted/hello`.
    pub fn default_model(&self) -> ModelRef {
        self.default_model.clone().unwrap_or_else(scripted)
    }

    /// The default model, if the user has chosen one.
    pub fn chosen_model(&self) -> Option<&ModelRef> {
        self.default_model.as_ref()
    }
}

/// Built-in prices; the user's own replace them.
fn prices(models: &BTreeMap<ModelRef, ModelConfig>) -> Result<PriceTable, ProjectError> {
    let mut prices = built_in_prices()?;
    let own = models
        .iter()
        .filter_map(|(model, config)| config.price.map(|price| (model.clone(), price)));
    prices.extend(own.collect());
    Ok(prices)
}

/// Prices without those of the user.
pub(crate) fn built_in_prices() -> Result<PriceTable, ProjectError> {
    let mut prices: PriceTable = toml::from_str(PRICES)
        .map_err(|error| ProjectError::Failed(format!("the built-in prices: {error}")))?;
    // `openai-responses` serves the same models through another API.
    let on_responses = prices.iter().filter(|(model, _)| model.provider() == "openai");
    let on_responses = on_responses.filter_map(|(model, price)| {
        Some((ModelRef::parse(&format!("openai-responses/{}", model.model())).ok()?, *price))
    });
    prices.extend(on_responses.collect());
    Ok(prices)
}

fn context_windows(
    models: &BTreeMap<ModelRef, ModelConfig>,
) -> Result<ContextWindows, ProjectError> {
    let known = toml::from_str(WINDOWS)
        .map_err(|error| ProjectError::Failed(format!("the built-in windows: {error}")))?;
    let own = models
        .iter()
        .filter_map(|(model, config)| Some((model.clone(), config.context_tokens?.get())));
    Ok(ContextWindows { own: own.collect(), known })
}

#[expect(clippy::expect_used, reason = "the literal names a model")]
fn scripted() -> ModelRef {
    ModelRef::parse("scripted/hello").expect("the literal names a model")
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

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ProjectError> {
    toml::from_str(text).map_err(|error| {
        // The line itself is left out: it may hold a key.
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        ProjectError::InvalidInput(format!("{}: line {line}: {}", path.display(), error.message()))
    })
}
