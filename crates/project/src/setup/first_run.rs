//! The way to a first model: whose key a text is, whether a key works, and which servers of models run on this
//! machine. It asks no user and prints nothing.

use std::time::Duration;

use antiphon_core::ProviderError;

use crate::environment::Environment;
use crate::error::ProjectError;
use crate::models::{Models, list_models};
use crate::settings::{Key, Kind, Limits, ProviderConfig, SettingsEdit, UserSettings};

/// How long a local server may take to list its models.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(300);

/// Most models of a local server that are offered.
const LOCAL_MODELS_MAX: usize = 20;

/// The variable in which Ollama keeps its address.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// Local servers: what people call them, the name of the provider, and the usual port.
const LOCAL: [(&str, &str, u16); 4] = [
    ("llama.cpp", "llama-cpp", 8080),
    ("Ollama", "ollama", 11434),
    ("LM Studio", "lm-studio", 1234),
    ("vLLM", "vllm", 8000),
];

/// A server of models on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// What people call it, by its usual port.
    pub name: &'static str,
    /// The name of its provider in the settings.
    pub provider: &'static str,
    /// Its address, as the settings take it.
    pub base_url: String,
    /// Its models.
    pub models: Vec<String>,
}

/// Why a key is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The provider does not accept it: ask for another.
    #[error("{0}")]
    Wrong(String),
    /// Whether it is right could not be found out.
    #[error("{0}")]
    Unknown(String),
}

/// The provider whose keys begin like this one.
pub fn provider_of_key(key: &str) -> Option<&'static str> {
    let beginnings = [("sk-ant-", "anthropic"), ("AIza", "gemini"), ("sk-", "openai")];
    beginnings.iter().find(|(beginning, _)| key.starts_with(beginning)).map(|(_, name)| *name)
}

/// Asks the provider for its models with this key.
pub async fn check_key(
    provider: &str,
    key: &str,
    environment: &Environment,
) -> Result<(), KeyError> {
    let unknown = |error: ProjectError| KeyError::Unknown(error.to_string());
    let models = Models::new(UserSettings::load(environment).map_err(unknown)?);
    let Some(known) = models.settings().providers.get(provider) else {
        return Err(KeyError::Unknown(format!("there is no provider `{provider}`")));
    };
    let config =
        ProviderConfig { key: Key::Set { key: key.into(), variable: None }, ..known.clone() };
    let listed = list_models(&config, models.transport().map_err(unknown)?).await;
    listed.map(drop).map_err(|error| match error {
        ProviderError::Authentication { .. }
        | ProviderError::Permission { .. }
        | ProviderError::InvalidRequest { .. } => {
            let other = provider_of_key(key).filter(|other| *other != provider);
            let hint = other.map(|other| format!("; it looks like a key of {other}"));
            KeyError::Wrong(format!(
                "{provider} does not accept this key{}",
                hint.unwrap_or_default()
            ))
        }
        ProviderError::ContextOverflow { .. }
        | ProviderError::NotFound { .. }
        | ProviderError::RateLimited { .. }
        | ProviderError::Overloaded { .. }
        | ProviderError::Server { .. }
        | ProviderError::Connection { .. }
        | ProviderError::Timeout { .. }
        | ProviderError::Cut
        | ProviderError::Protocol { .. } => {
            KeyError::Unknown(format!("{provider} cannot be asked now: {error}"))
        }
    })
}

/// The servers of models that answer on their usual ports of this machine.
pub async fn local_servers(environment: &Environment) -> Vec<LocalServer> {
    let Ok(settings) = UserSettings::load(environment) else { return Vec::new() };
    let models = Models::new(settings);
    let [one, two, three, four] = LOCAL;
    let ollama = environment.text(OLLAMA_HOST);
    let found = tokio::join!(
        probe(&models, one, None),
        probe(&models, two, ollama.as_deref()),
        probe(&models, three, None),
        probe(&models, four, None),
    );
    [found.0, found.1, found.2, found.3].into_iter().flatten().collect()
}

async fn probe(
    models: &Models,
    (name, provider, port): (&'static str, &'static str, u16),
    host: Option<&str>,
) -> Option<LocalServer> {
    let host = host.map(|host| host.trim_end_matches('/')).filter(|host| host.contains(':'));
    let address = match host {
        Some(host) if host.starts_with("http") => host.to_owned(),
        Some(host) => format!("http://{host}"),
        None => format!("http://127.0.0.1:{port}"),
    };
    let config = ProviderConfig {
        kind: Kind::OpenAi,
        base_url: format!("{address}/v1"),
        key: Key::NotNeeded,
        reasons: false,
        limits: Limits::default(),
    };
    let transport = models.transport_to(&config.base_url).ok()?;
    let listed = tokio::time::timeout(LOCAL_TIMEOUT, list_models(&config, transport)).await;
    let mut listed = listed.ok()?.ok()?;
    listed.truncate(LOCAL_MODELS_MAX);
    let base_url = config.base_url;
    (!listed.is_empty()).then_some(LocalServer { name, provider, base_url, models: listed })
}

/// Stores a key in the user's settings.
pub fn store_key(provider: &str, key: &str, environment: &Environment) -> Result<(), ProjectError> {
    let mut settings = SettingsEdit::open(environment)?;
    settings.set_text(&["providers", provider, "api_key"], key)?;
    settings.save()
}

/// Stores a local server in the user's settings, with the model that tasks use by default.
pub fn store_server(
    server: &LocalServer,
    model: &str,
    environment: &Environment,
) -> Result<(), ProjectError> {
    let mut settings = SettingsEdit::open(environment)?;
    settings.set_text(&["providers", server.provider, "kind"], Kind::OpenAi.as_str())?;
    settings.set_text(&["providers", server.provider, "base_url"], &server.base_url)?;
    settings.set_text(&["model"], &format!("{}/{model}", server.provider))?;
    settings.save()
}

/// Stores the model that tasks use by default in the user's settings.
pub fn store_model(model: &str, environment: &Environment) -> Result<(), ProjectError> {
    let mut settings = SettingsEdit::open(environment)?;
    settings.set_text(&["model"], model)?;
    settings.save()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_recognized_by_its_beginning() {
        assert_eq!(provider_of_key("sk-ant-x"), Some("anthropic"));
        assert_eq!(provider_of_key("sk-proj-x"), Some("openai"));
        assert_eq!(provider_of_key("AIzaX"), Some("gemini"));
        assert_eq!(provider_of_key("x"), None);
    }
}
