//! Model providers: the built-in ones and the user's own, which may replace them. Keys come from the
//! environment or the user's file and are never printed.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use antiphon_core::ModelRef;
use secrecy::SecretString;
use serde::Deserialize;

use crate::environment::Environment;
use crate::error::ProjectError;

/// One model provider.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The API the provider speaks.
    pub kind: Kind,
    /// Address that the paths of the API are appended to.
    pub base_url: String,
    /// Its key, or why there is none.
    pub key: Key,
    /// Its models reason, and it accepts the fields for reasoning.
    pub reasons: bool,
    /// Limits of requests to it.
    pub limits: Limits,
}

/// The API a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Gemini `generateContent`.
    Gemini,
}

impl Kind {
    /// The name used in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

impl Kind {
    /// The built-in provider whose keys this API takes.
    pub(crate) fn built_in_provider(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi | Self::OpenAiResponses => "openai",
            Self::Gemini => "gemini",
        }
    }
}

/// A provider's key, and where it comes from.
#[derive(Debug, Clone)]
pub enum Key {
    /// The key is set.
    Set {
        /// The key itself.
        key: SecretString,
        /// The environment variable it came from; absent when it is in the user's file.
        variable: Option<String>,
    },
    /// The key's environment variable is empty or absent.
    Missing {
        /// The variable that should hold the key.
        variable: String,
    },
    /// The provider takes no key.
    NotNeeded,
}

/// Limits of the requests to a provider.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests at a time; unlimited when absent.
    pub concurrency: Option<NonZeroUsize>,
    /// Requests per minute; unlimited when absent.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Seconds to wait for the first byte of an answer.
    pub first_byte_s: Option<NonZeroU32>,
    /// Seconds to wait for each following byte.
    pub stall_s: Option<NonZeroU32>,
    /// Attempts after the first.
    pub retries: Option<usize>,
}

/// A provider in the user's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderFile {
    /// Absent: that of the built-in provider of this name.
    kind: Option<Kind>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    api_key: Option<SecretString>,
    #[serde(default)]
    reasons: bool,
    #[serde(default)]
    limits: Limits,
}

/// A built-in provider: its name, API, address, and the variables of its key and address.
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

/// The address that is built in for a provider.
pub(crate) fn built_in_address(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|known| known.name == name).map(|known| known.base_url)
}

/// The built-in providers and the user's own; a user's provider replaces a built-in one of its name.
pub(super) fn providers(
    own: BTreeMap<String, ProviderFile>,
    environment: &Environment,
) -> Result<BTreeMap<String, ProviderConfig>, ProjectError> {
    let built_in = |known: &BuiltIn| (known.name.to_owned(), known.provider(environment));
    let mut providers: BTreeMap<String, ProviderConfig> = BUILT_IN.iter().map(built_in).collect();
    for (name, file) in own {
        // A name with a slash or a blank cannot be the first part of PROVIDER/MODEL.
        if ModelRef::parse(&format!("{name}/x")).is_err() || name == "scripted" {
            return Err(ProjectError::InvalidInput(format!(
                "`{name}` cannot be the name of a provider"
            )));
        }
        let provider = file.provider(&name, providers.get(&name), environment)?;
        providers.insert(name, provider);
    }
    Ok(providers)
}

impl BuiltIn {
    fn provider(&self, environment: &Environment) -> ProviderConfig {
        let base_url = environment.text(self.url_env);
        ProviderConfig {
            kind: self.kind,
            base_url: base_url.unwrap_or_else(|| self.base_url.to_owned()),
            key: key(self.key_env, environment),
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
        environment: &Environment,
    ) -> Result<ProviderConfig, ProjectError> {
        let base_url = self.base_url.or_else(|| built_in.map(|known| known.base_url.clone()));
        let key = match (self.api_key, self.api_key_env) {
            (Some(key), variable) => Key::Set { key, variable },
            (None, Some(name)) => key(&name, environment),
            (None, None) => built_in.map_or(Key::NotNeeded, |known| known.key.clone()),
        };
        let kind = self.kind.or_else(|| built_in.map(|known| known.kind));
        Ok(ProviderConfig {
            kind: kind.ok_or_else(|| {
                let kinds = "openai, openai-responses, anthropic or gemini";
                incomplete(name, &format!("a `kind` ({kinds})"), base_url.as_deref())
            })?,
            base_url: base_url.ok_or_else(|| incomplete(name, "a `base_url`", None))?,
            key,
            reasons: self.reasons,
            limits: self.limits,
        })
    }
}

/// A provider that lacks a setting. Settings that are changed one by one are checked one by one.
fn incomplete(name: &str, needed: &str, base_url: Option<&str>) -> ProjectError {
    let base_url = base_url.unwrap_or("http://…");
    let table = format!("{{kind = \"openai\", base_url = \"{base_url}\"}}");
    ProjectError::InvalidInput(format!(
        "the provider `{name}` needs {needed}: set both at once, as with \
         `antiphon config set providers.{name} '{table}'`"
    ))
}

fn key(name: &str, environment: &Environment) -> Key {
    match environment.text(name) {
        Some(key) => Key::Set { key: key.into(), variable: Some(name.to_owned()) },
        None => Key::Missing { variable: name.to_owned() },
    }
}
