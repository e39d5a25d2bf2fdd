//! What the user has configured: one file of the user's own, and the environment.
//!
//! Read once, at the start, into plain values. A file that cannot be understood is an error
//! that names the line; a key in it is never printed.

mod budget;
mod peer;
mod providers;
mod secrets;
mod telemetry;
mod webhooks;
mod windows;

use std::collections::BTreeMap;
use std::env;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use antiphon_core::{ModelRef, Price, PriceTable, SourceName, SpendLimits};
use antiphon_schedule::{ScheduleConfig, Schedules};
use antiphon_terminal::TerminalProfile;
use secrecy::SecretString;
use serde::Deserialize;

use crate::failure::Failure;
use budget::BudgetConfig;
pub(crate) use budget::limit;
pub(crate) use peer::PeerConfig;
use providers::{ProviderFile, providers};
pub(crate) use telemetry::TelemetryConfig;
pub(crate) use webhooks::{WebhookConfig, webhooks};
pub(crate) use windows::Windows;

/// The prices that come with this version.
const PRICES: &str = include_str!("../data/prices.toml");

/// The context windows that come with this version.
const WINDOWS: &str = include_str!("../data/windows.toml");

/// Largest configuration file.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Everything the user has configured.
#[derive(Debug)]
pub(crate) struct Config {
    /// Where the file is, or would be.
    pub(crate) path: PathBuf,
    /// Whether it is there.
    pub(crate) found: bool,
    /// The model to ask when none is named.
    default_model: Option<ModelRef>,
    /// Providers by name, the built-in ones included.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// Settings of single models.
    pub(crate) models: BTreeMap<ModelRef, ModelConfig>,
    /// Built-in prices, with the user's own in their place.
    pub(crate) prices: PriceTable,
    /// Sizes of context windows.
    windows: Windows,
    /// What agents may do.
    pub(crate) permissions: antiphon_permissions::Config,
    /// What commands may touch.
    pub(crate) sandbox: SandboxConfig,
    /// Servers whose tools agents can use.
    pub(crate) mcp: antiphon_mcp::McpConfig,
    /// Other orchestrators, by name.
    pub(crate) peers: BTreeMap<String, PeerConfig>,
    /// Programs that may run in terminals, by name.
    pub(crate) terminals: BTreeMap<String, TerminalProfile>,
    /// Events at times that the user chose.
    pub(crate) schedules: Schedules,
    /// Scripts of the user's own, by the names of their models.
    pub(crate) scripts: BTreeMap<String, PathBuf>,
    /// Where traces go.
    pub(crate) telemetry: TelemetryConfig,
    /// Who may send events, by name.
    pub(crate) webhooks: BTreeMap<SourceName, WebhookConfig>,
    /// What may be spent in all.
    pub(crate) budget: SpendLimits,
}

/// What commands may touch beside the project.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SandboxConfig {
    /// Commands may use the network.
    pub(crate) network: bool,
    /// Variables of the environment that commands get beside the usual ones.
    pub(crate) env: Vec<String>,
    /// Folders beneath `/tmp` or `/run` that commands may see.
    pub(crate) readable: Vec<PathBuf>,
}

/// One provider.
#[derive(Debug, Clone)]
pub(crate) struct ProviderConfig {
    pub(crate) kind: Kind,
    pub(crate) base_url: String,
    pub(crate) key: Key,
    /// Its models reason, and it takes what belongs to that.
    pub(crate) reasons: bool,
    pub(crate) limits: Limits,
}

/// The wire a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Anthropic,
    /// Chat Completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Gemini,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

/// A provider's key, and where it was looked for.
#[derive(Debug, Clone)]
pub(crate) enum Key {
    /// Here it is, and the variable it came from.
    Set { key: SecretString, variable: Option<String> },
    /// It should be in this variable, which is empty or not set.
    Missing { variable: String },
    /// The provider needs none.
    NotNeeded,
}

/// How hard a provider may be driven.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Answers at a time.
    pub(crate) concurrency: Option<NonZeroUsize>,
    pub(crate) requests_per_minute: Option<NonZeroU32>,
    /// Seconds to wait for the first sign of life.
    pub(crate) first_byte_s: Option<NonZeroU32>,
    /// Seconds to wait for the next one.
    pub(crate) stall_s: Option<NonZeroU32>,
    /// Tries after the first.
    pub(crate) retries: Option<usize>,
}

/// Settings of one model.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ModelConfig {
    /// It writes tool calls as text.
    pub(crate) text_tool_calls: bool,
    /// Whom to ask when it cannot answer.
    pub(crate) fallbacks: Vec<ModelRef>,
    /// What it costs.
    pub(crate) price: Option<Price>,
    /// How many tokens a request to it and its answer may have together.
    pub(crate) context_tokens: Option<NonZeroU64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<ModelRef>,
    providers: BTreeMap<String, ProviderFile>,
    models: BTreeMap<ModelRef, ModelConfig>,
    permissions: antiphon_permissions::Config,
    sandbox: SandboxConfig,
    mcp: antiphon_mcp::McpConfig,
    peers: BTreeMap<String, PeerConfig>,
    terminals: BTreeMap<String, toml::Table>,
    schedules: BTreeMap<String, ScheduleConfig>,
    scripts: BTreeMap<String, PathBuf>,
    telemetry: TelemetryConfig,
    webhooks: BTreeMap<SourceName, WebhookConfig>,
    #[serde(default)]
    budget: BudgetConfig,
}

impl Config {
    /// Reads the user's file and the environment.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = path();
        let text = read(&path)?;
        let chosen = variable("ANTIPHON_MODEL").map(|name| ModelRef::parse(&name)).transpose();
        let chosen = chosen.map_err(|error| Failure::usage(format!("ANTIPHON_MODEL: {error}")))?;
        Self::of(path, text.as_deref(), chosen)
    }

    /// Reads this file in place of the user's own.
    pub(crate) fn alone(path: &Path) -> Result<Self, Failure> {
        let text = read(path)?;
        Self::of(path.to_owned(), text.as_deref(), None)
    }

    fn of(path: PathBuf, text: Option<&str>, chosen: Option<ModelRef>) -> Result<Self, Failure> {
        let file = text.map(|text| parse(&path, text)).transpose()?;
        let (file, found) = (file.unwrap_or_default(), text.is_some());
        let mut prices: PriceTable = toml::from_str(PRICES)
            .map_err(|error| Failure::failed(format!("the built-in prices: {error}")))?;
        let own = file
            .models
            .iter()
            .filter_map(|(model, config)| config.price.map(|price| (model.clone(), price)));
        // The same models on another wire.
        let on_responses = prices.iter().filter(|(model, _)| model.provider() == "openai");
        let on_responses = on_responses.filter_map(|(model, price)| {
            Some((ModelRef::parse(&format!("openai-responses/{}", model.model())).ok()?, *price))
        });
        prices.extend(on_responses.collect());
        prices.extend(own.collect());
        let known = toml::from_str(WINDOWS)
            .map_err(|error| Failure::failed(format!("the built-in windows: {error}")))?;
        let own = file
            .models
            .iter()
            .filter_map(|(model, config)| Some((model.clone(), config.context_tokens?.get())));
        let windows = Windows { own: own.collect(), known };
        Ok(Self {
            found,
            path: path.clone(),
            windows,
            permissions: file.permissions,
            sandbox: file.sandbox,
            mcp: file.mcp,
            peers: file.peers,
            terminals: terminals(&path, file.terminals)?,
            schedules: Schedules::from_config(file.schedules)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?,
            scripts: scripts(&path, file.scripts),
            telemetry: file.telemetry,
            webhooks: file.webhooks,
            budget: file.budget.limits()?,
            default_model: chosen.or(file.model),
            providers: providers(file.providers)?,
            models: file.models,
            prices,
        })
    }

    /// Where rules that were allowed always are kept: beside the user's file, never in a project.
    pub(crate) fn remembered_path(&self) -> PathBuf {
        self.path.with_file_name("permissions.toml")
    }

    /// How many tokens a request to a model and its answer may have together.
    pub(crate) fn windows(&self) -> &Windows {
        &self.windows
    }

    /// The model to ask when none is named.
    pub(crate) fn default_model(&self) -> ModelRef {
        self.default_model.clone().unwrap_or_else(scripted)
    }

    /// The same, if the user has chosen one.
    pub(crate) fn chosen_model(&self) -> Option<&ModelRef> {
        self.default_model.as_ref()
    }
}

#[expect(clippy::expect_used, reason = "the literal names a model")]
fn scripted() -> ModelRef {
    ModelRef::parse("scripted/hello").expect("the literal names a model")
}

/// The programs that the user lets run in terminals. One that is only named is a built-in one.
fn terminals(
    path: &Path,
    named: BTreeMap<String, toml::Table>,
) -> Result<BTreeMap<String, TerminalProfile>, Failure> {
    let built_in = TerminalProfile::built_in();
    let profile = |(name, table): (String, toml::Table)| {
        let refuse = |reason: String| {
            Failure::usage(format!("{}: [terminals.{name}]: {reason}", path.display()))
        };
        let profile = match built_in.get(&name).filter(|_| table.is_empty()) {
            Some(known) => known.clone(),
            None => table
                .try_into()
                .map_err(|error: toml::de::Error| refuse(error.message().to_owned()))?,
        };
        Ok((name, profile))
    };
    named.into_iter().map(profile).collect()
}

/// Where the user's scripts are: a path is meant from beside the user's file.
fn scripts(path: &Path, named: BTreeMap<String, PathBuf>) -> BTreeMap<String, PathBuf> {
    let beside = path.parent().unwrap_or(Path::new("/"));
    named.into_iter().map(|(name, script)| (name, beside.join(script))).collect()
}

fn path() -> PathBuf {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = variable("ANTIPHON_CONFIG") {
        // What is beside it is hidden from commands, wherever they run.
        return std::path::absolute(&path).unwrap_or_else(|_| path.into());
    }
    // Only the user's own: a relative path would be read from whatever folder this runs in.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".config"));
    let nowhere = || PathBuf::from("/nonexistent");
    absolute("XDG_CONFIG_HOME").or_else(home).unwrap_or_else(nowhere).join("antiphon/config.toml")
}

/// `None` when there is no such file and nobody asked for it.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let refuse =
        |reason: String| Failure::usage(format!("cannot read {}: {reason}", path.display()));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            match env::var_os("ANTIPHON_CONFIG").filter(|path| !path.is_empty()) {
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

fn parse(path: &Path, text: &str) -> Result<File, Failure> {
    toml::from_str(text).map_err(|error| {
        // Not the line itself: it may hold a key.
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Failure::usage(format!("{}: line {line}: {}", path.display(), error.message()))
    })
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
