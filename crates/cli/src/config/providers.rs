//! Who can be asked: the providers everybody has, and the user's own beside them or in their place. A
//! key is looked for here, and never printed.

use std::collections::BTreeMap;

use antiphon_core::ModelRef;
use secrecy::SecretString;
use serde::Deserialize;

use super::{Key, Kind, Limits, ProviderConfig, variable};
use crate::failure::Failure;

/// A provider, as the user writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderFile {
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

/// The built-in providers, with the user's own beside them or in their place.
pub(super) fn providers(
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
