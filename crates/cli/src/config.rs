//! What the user has configured: one file of the user's own, and the environment.
//!
//! Read once, at the start, into plain values. A file that cannot be understood is an error
//! that names the line; a key in it is never printed.

use std::collections::BTreeMap;
use std::env;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use antiphon_core::{ModelRef, Price, PriceTable};
use antiphon_terminal::TerminalProfile;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

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
}

/// Another orchestrator, that runs tasks for this one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerConfig {
    pub(crate) url: String,
    /// The variable that holds its token.
    token_env: Option<String>,
    /// Or the file that does: `.antiphon/token` of its project.
    token_file: Option<PathBuf>,
}

impl PeerConfig {
    /// Its token, from where the user says.
    pub(crate) fn token(&self, name: &str) -> Result<SecretString, Failure> {
        let refuse = |reason: String| Failure::usage(format!("[peers.{name}]: {reason}"));
        let text = match (&self.token_env, &self.token_file) {
            (Some(named), None) => {
                variable(named).ok_or_else(|| refuse(format!("{named} is not set")))?
            }
            (None, Some(path)) => std::fs::read_to_string(path)
                .map_err(|error| refuse(format!("{}: {error}", path.display())))?,
            (None, None) | (Some(_), Some(_)) => {
                return Err(refuse("give `token_env` or `token_file`".to_owned()));
            }
        };
        Ok(SecretString::from(text.trim()))
    }
}

/// How many tokens a request to a model and its answer may have together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    /// What the user says of single models.
    own: BTreeMap<ModelRef, u64>,
    /// What comes with this version, by the beginnings of models' names.
    known: BTreeMap<String, u64>,
}

impl Windows {
    /// What the user says, or what is known of the longest beginning of its name.
    pub(crate) fn of(&self, model: &ModelRef) -> Option<u64> {
        let name = model.model().rsplit('/').next().unwrap_or_default();
        let known = self.known.iter().filter(|(beginning, _)| name.starts_with(*beginning));
        let known = known.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens);
        self.own.get(model).copied().or(known)
    }
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderFile {
    kind: Kind,
    base_url: Option<String>,
    api_key_env: Option<String>,
    api_key: Option<SecretString>,
    #[serde(default)]
    reasons: bool,
    #[serde(default)]
    limits: Limits,
}

/// A provider everybody has: its name, wire, address, and the variables of its key and address.
struct BuiltIn {
    name: &'static str,
    kind: Kind,
    base_url: &'static str,
    key_env: &'static str,
    url_env: &'static str,
}

const BUILT_IN: [BuiltIn; 4] = [
    BuiltIn {
        name: "anthropic",
        kind: Kind::Anthropic,
        base_url: antiphon_anthropic::DEFAULT_URL,
        key_env: "ANTHROPIC_API_KEY",
        url_env: "ANTHROPIC_BASE_URL",
    },
    BuiltIn {
        name: "openai",
        kind: Kind::OpenAi,
        base_url: antiphon_openai::DEFAULT_URL,
        key_env: "OPENAI_API_KEY",
        url_env: "OPENAI_BASE_URL",
    },
    BuiltIn {
        name: "openai-responses",
        kind: Kind::OpenAiResponses,
        base_url: antiphon_openai::DEFAULT_URL,
        key_env: "OPENAI_API_KEY",
        url_env: "OPENAI_BASE_URL",
    },
    BuiltIn {
        name: "gemini",
        kind: Kind::Gemini,
        base_url: antiphon_gemini::DEFAULT_URL,
        key_env: "GEMINI_API_KEY",
        url_env: "GEMINI_BASE_URL",
    },
];

impl Config {
    /// Reads the user's file and the environment.
    pub(crate) fn load() -> Result<Self, Failure> {
        let path = path();
        let (file, found) = match read(&path)? {
            Some(text) => (parse(&path, &text)?, true),
            None => (File::default(), false),
        };
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
        let chosen = variable("ANTIPHON_MODEL").map(|name| ModelRef::parse(&name)).transpose();
        let chosen = chosen.map_err(|error| Failure::usage(format!("ANTIPHON_MODEL: {error}")))?;
        Ok(Self {
            found,
            path: path.clone(),
            windows,
            permissions: file.permissions,
            sandbox: file.sandbox,
            mcp: file.mcp,
            peers: file.peers,
            terminals: terminals(&path, file.terminals)?,
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

fn path() -> PathBuf {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = variable("ANTIPHON_CONFIG") {
        return path.into();
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

/// The built-in providers, with the user's own beside them or in their place.
fn providers(
    own: BTreeMap<String, ProviderFile>,
) -> Result<BTreeMap<String, ProviderConfig>, Failure> {
    let mut providers: BTreeMap<String, ProviderConfig> =
        BUILT_IN.iter().map(|built_in| (built_in.name.to_owned(), built_in.provider())).collect();
    for (name, file) in own {
        // A name with a slash or a blank could never be written in front of a model.
        if ModelRef::parse(&format!("{name}/x")).is_err() || name == "scripted" {
            return Err(Failure::usage(format!("`{name}` cannot be the name of a provider")));
        }
        let provider = file.provider(&name, providers.get(&name))?;
        providers.insert(name, provider);
    }
    Ok(providers)
}

impl BuiltIn {
    fn provider(&self) -> ProviderConfig {
        ProviderConfig {
            kind: self.kind,
            base_url: variable(self.url_env).unwrap_or_else(|| self.base_url.to_owned()),
            key: key(self.key_env),
            reasons: self.kind == Kind::OpenAiResponses,
            limits: Limits::default(),
        }
    }
}

impl ProviderFile {
    fn provider(
        self,
        name: &str,
        built_in: Option<&ProviderConfig>,
    ) -> Result<ProviderConfig, Failure> {
        let base_url = self.base_url.or_else(|| built_in.map(|known| known.base_url.clone()));
        let key = match (self.api_key, self.api_key_env) {
            (Some(key), variable) => Key::Set { key, variable },
            (None, Some(name)) => key(&name),
            (None, None) => built_in.map_or(Key::NotNeeded, |known| known.key.clone()),
        };
        Ok(ProviderConfig {
            kind: self.kind,
            base_url: base_url.ok_or_else(|| {
                Failure::usage(format!("the provider `{name}` needs a `base_url`"))
            })?,
            key,
            reasons: self.reasons,
            limits: self.limits,
        })
    }
}

fn key(name: &str) -> Key {
    match variable(name) {
        Some(key) => Key::Set { key: key.into(), variable: Some(name.to_owned()) },
        None => Key::Missing { variable: name.to_owned() },
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
