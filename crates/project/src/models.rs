//! From the name of a model to the provider that answers.
//!
//! A provider is built once with its layers and shared by its models: they share its connections, limits
//! and circuit breaker.

mod listing;
mod route;

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_anthropic::{Anthropic, CacheTtl};
use antiphon_core::{ModelRef, Provider, RawJson};
use antiphon_gemini::Gemini;
use antiphon_layers::{
    Breaker, BreakerConfig, Concurrency, Fallback, FallbackModel, RateLimit, Retry, RetryConfig,
    TextCalls, Timeouts, TimeoutsConfig,
};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig, TransportError};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use antiphon_runtime::BreakerState;
use antiphon_scripted::{Recorder, Recording, Replay, Script, ScriptedProvider};
use secrecy::{ExposeSecret, SecretString};

use crate::error::ProjectError;
use crate::first_run::provider_of_key;
use crate::settings::{Key, Kind, Limits, ProviderConfig, UserSettings, built_in_address};
use crate::task::task_process::digest;
pub use listing::{KnownModel, ModelSource, known_models, list_models};
pub use route::Route;

/// Variables that may name a proxy for addresses without TLS.
const PROXIES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// A model, its own fallbacks, and the route to it.
type ModelKey = (ModelRef, Vec<ModelRef>, Route);

/// Most models that are kept ready, each with its fallbacks and its route. One more drops them.
const MODELS_MAX: usize = 1024;

/// Every model the user can reach.
pub struct Models {
    settings: UserSettings,
    /// Digests of the addresses that providers must have.
    expected: BTreeMap<String, String>,
    transport: OnceLock<Transport>,
    /// For providers that are reached without TLS.
    plain_transport: OnceLock<Transport>,
    /// Providers with their fallbacks.
    with_fallbacks: Mutex<HashMap<ModelKey, Arc<dyn Provider>>>,
    /// Shared providers with their layers, by name and by whether tool calls are written as text.
    shared: Mutex<HashMap<(String, bool), Arc<dyn Provider>>>,
    /// Circuit breakers of the shared providers.
    breakers: Mutex<HashMap<(String, bool), SharedBreaker>>,
}

type SharedBreaker = Breaker<Arc<dyn Provider>>;

impl Models {
    /// Models of these settings. Providers are built when they are first needed.
    pub fn new(settings: UserSettings) -> Self {
        Self {
            settings,
            expected: BTreeMap::new(),
            transport: OnceLock::new(),
            plain_transport: OnceLock::new(),
            with_fallbacks: Mutex::default(),
            shared: Mutex::default(),
            breakers: Mutex::default(),
        }
    }

    /// The same, which never asks a provider at another address than the digests say.
    #[must_use]
    pub(crate) fn expecting(self, expected: BTreeMap<String, String>) -> Self {
        Self { expected, ..self }
    }

    /// The settings the models were made from.
    pub fn settings(&self) -> &UserSettings {
        &self.settings
    }

    /// The provider of `model` with its configured fallbacks.
    pub fn provider(
        &self,
        model: &ModelRef,
        route: &Route,
    ) -> Result<Arc<dyn Provider>, ProjectError> {
        self.with_fallbacks(model, &[], route)
    }

    /// The provider of `model` with these fallbacks, or the configured ones when there are none.
    fn with_fallbacks(
        &self,
        model: &ModelRef,
        own: &[ModelRef],
        route: &Route,
    ) -> Result<Arc<dyn Provider>, ProjectError> {
        let key = (model.clone(), own.to_vec(), Route { process: None, ..route.clone() });
        if let Some(provider) = self.known().get(&key) {
            return Ok(Arc::clone(provider));
        }
        let first = self.choice(model, route)?;
        let configured = self.settings.models.get(model).map(|m| m.fallbacks.as_slice());
        let fallbacks = if own.is_empty() { configured.unwrap_or_default() } else { own };
        let provider = match fallbacks {
            [] => first.provider,
            others => {
                let others = others.iter().map(|other| self.choice(other, route));
                Arc::new(Fallback::new(first, others.collect::<Result<Vec<_>, _>>()?))
            }
        };
        let mut known = self.known();
        if known.len() >= MODELS_MAX {
            // A recording and its replay go on where they are; any other provider is built again when it is needed.
            known.retain(|(_, _, route), _| route.record.is_some() || route.replay.is_some());
        }
        known.insert(key, Arc::clone(&provider));
        Ok(provider)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ModelKey, Arc<dyn Provider>>> {
        self.with_fallbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a model that a person names: the policy allows it, its provider is known and has a key.
    pub fn check(&self, model: &ModelRef, route: &Route) -> Result<(), ProjectError> {
        self.settings.policy.check_model(model, &self.settings)?;
        if model.provider() == "scripted" {
            return self.script(model, route).map(drop);
        }
        let name = model.provider();
        let config = self.settings.providers.get(name);
        api_key(name, config.ok_or_else(|| self.unknown_provider(name))?).map(drop)
    }

    /// The HTTP client of all providers.
    pub fn transport(&self) -> Result<&Transport, ProjectError> {
        made_once(&self.transport, Transport::new)
    }

    /// The HTTP client of a provider at this address.
    pub(crate) fn transport_to(&self, base_url: &str) -> Result<&Transport, ProjectError> {
        // A proxy may be reached with TLS even then.
        let has_proxy =
            PROXIES.iter().any(|variable| self.settings.environment.text(variable).is_some());
        if has_proxy || !base_url.starts_with("http://") {
            return self.transport();
        }
        made_once(&self.plain_transport, Transport::without_tls)
    }

    /// Every way to a model leads through here: settings, flags, requests, agents, and recorded tasks.
    fn choice(&self, model: &ModelRef, route: &Route) -> Result<FallbackModel, ProjectError> {
        self.settings.policy.check_model(model, &self.settings)?;
        Ok(FallbackModel { model: model.clone(), provider: self.layered(model, route)? })
    }

    fn layered(&self, model: &ModelRef, route: &Route) -> Result<Arc<dyn Provider>, ProjectError> {
        if let Some(path) = &route.replay {
            let recording = Recording::load(path);
            let recording =
                recording.map_err(|error| ProjectError::InvalidInput(error.to_string()))?;
            let (provider, _) = layers(Arc::new(Replay::new(recording)), Limits::default(), route)?;
            return Ok(provider);
        }
        if model.provider() == "scripted" {
            let scripted = ScriptedProvider::new(self.script(model, route)?);
            return Ok(layers(Arc::new(scripted), Limits::default(), route)?.0);
        }
        let name = model.provider();
        let as_text = self.settings.models.get(model).is_some_and(|m| m.text_tool_calls);
        // A task with its own recording or number of retries has its own provider.
        let is_shared = route.record.is_none() && route.retries.is_none();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (name.to_owned(), as_text);
        if let Some(provider) = shared.get(&key).filter(|_| is_shared) {
            return Ok(Arc::clone(provider));
        }
        let config =
            self.settings.providers.get(name).ok_or_else(|| self.unknown_provider(name))?;
        self.check_address(name, config)?;
        let mut provider = bare(name, config, self.transport_to(&config.base_url)?.clone())?;
        if as_text {
            provider = Arc::new(TextCalls::new(provider));
        }
        let (provider, breaker) = layers(provider, config.limits, route)?;
        if is_shared {
            let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
            breakers.insert(key.clone(), breaker);
            shared.insert(key, Arc::clone(&provider));
        }
        Ok(provider)
    }

    /// Another process may have started the task: its model is never looked for at another address.
    fn check_address(&self, name: &str, config: &ProviderConfig) -> Result<(), ProjectError> {
        match self.expected.get(name) {
            Some(expected) if *expected != digest(&config.base_url) => {
                Err(ProjectError::InvalidInput(format!(
                    "the process that started the task reached the provider `{name}` at another address than \
                     this one: resume the task with `antiphon run --resume TASK` where it was started"
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The script of a scripted model: the task's own, the user's, or a built-in one.
    fn script(&self, model: &ModelRef, route: &Route) -> Result<Script, ProjectError> {
        let own = self.settings.scripts.get(model.model());
        if let Some(path) = route.script.as_ref().or(own) {
            return read_script(path);
        }
        Script::builtin(model.model()).ok_or_else(|| {
            ProjectError::InvalidInput(format!(
                "there is no built-in script `{}`: use one of {}, --script FILE, or [scripts] in {}",
                model.model(),
                Script::BUILTIN.join(", "),
                self.settings.path.display()
            ))
        })
    }

    fn unknown_provider(&self, name: &str) -> ProjectError {
        let known: Vec<&str> = self.settings.providers.keys().map(String::as_str).collect();
        ProjectError::InvalidInput(format!(
            "there is no provider `{name}`: use scripted, {}, or add [providers.{name}] to {}",
            known.join(", "),
            self.settings.path.display()
        ))
    }
}

impl antiphon_runtime::Models for Models {
    fn provider(
        &self,
        model: &ModelRef,
        fallbacks: &[ModelRef],
        route: Option<&RawJson>,
    ) -> Result<Arc<dyn Provider>, String> {
        self.with_fallbacks(model, fallbacks, &Route::parse(route)?)
            .map_err(|error| error.to_string())
    }

    fn default_model(&self) -> Option<ModelRef> {
        self.settings.default_model().model().cloned()
    }

    fn window_tokens(&self, model: &ModelRef) -> Option<u64> {
        self.settings.windows().of(model)
    }

    /// The worst state of each provider that was called.
    fn breakers(&self) -> BTreeMap<String, BreakerState> {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states: BTreeMap<String, BreakerState> = BTreeMap::new();
        for ((name, _), breaker) in breakers.iter() {
            let state = match breaker.state() {
                antiphon_layers::BreakerState::Closed => BreakerState::Closed,
                antiphon_layers::BreakerState::HalfOpen => BreakerState::HalfOpen,
                antiphon_layers::BreakerState::Open => BreakerState::Open,
            };
            let worst = states.entry(name.clone()).or_insert(state);
            *worst = (*worst).max(state);
        }
        states
    }
}

fn made_once(
    place: &OnceLock<Transport>,
    make: impl FnOnce(&TransportConfig) -> Result<Transport, TransportError>,
) -> Result<&Transport, ProjectError> {
    if let Some(transport) = place.get() {
        return Ok(transport);
    }
    let transport = make(&TransportConfig::default());
    let transport = transport.map_err(|error| ProjectError::Failed(error.to_string()))?;
    Ok(place.get_or_init(|| transport))
}

/// The layers of a provider, in the order their crate gives, and its circuit breaker.
fn layers(
    mut bare: Arc<dyn Provider>,
    limits: Limits,
    route: &Route,
) -> Result<(Arc<dyn Provider>, SharedBreaker), ProjectError> {
    if let Some(path) = &route.record {
        let recorder = Recorder::append(bare, path);
        bare = Arc::new(recorder.map_err(|error| ProjectError::InvalidInput(error.to_string()))?);
    }
    let seconds = |s: Option<NonZeroU32>, default: Duration| {
        s.map_or(default, |s| Duration::from_secs(u64::from(s.get())))
    };
    let defaults = TimeoutsConfig::default();
    let timeouts = TimeoutsConfig {
        first_byte: seconds(limits.first_byte_s, defaults.first_byte),
        stall: seconds(limits.stall_s, defaults.stall),
    };
    let mut provider: Arc<dyn Provider> = Arc::new(Timeouts::new(bare, timeouts));
    if let Some(requests) = limits.requests_per_minute {
        provider = Arc::new(RateLimit::per_minute(provider, requests));
    }
    let retry = RetryConfig::default();
    let retries_max = route.retries.or(limits.retries).unwrap_or(retry.retries_max);
    provider = Arc::new(Retry::new(provider, RetryConfig { retries_max, ..retry }));
    let breaker = Breaker::new(provider, BreakerConfig::default());
    provider = Arc::new(breaker.clone());
    if let Some(limit) = limits.concurrency {
        provider = Arc::new(Concurrency::new(provider, limit));
    }
    Ok((provider, breaker))
}

/// The provider without layers.
fn bare(
    name: &str,
    config: &ProviderConfig,
    transport: Transport,
) -> Result<Arc<dyn Provider>, ProjectError> {
    let base_url = Endpoint::parse(&config.base_url)
        .map_err(|error| ProjectError::InvalidInput(format!("the provider `{name}`: {error}")))?;
    let api_key = api_key(name, config)?;
    check_owner_of_key(name, config)?;
    let name = name.to_owned();
    Ok(match config.kind {
        Kind::Anthropic => {
            let cache = Some(CacheTtl::FiveMinutes);
            let config = antiphon_anthropic::AnthropicConfig { name, base_url, api_key, cache };
            Arc::new(Anthropic::new(config, transport))
        }
        Kind::OpenAi => {
            let known = ChatQuirks::at(&base_url);
            let quirks = ChatQuirks { reasoning_effort: config.reasons, ..known };
            let config = ChatConfig { name, base_url, api_key, quirks };
            Arc::new(ChatCompletions::new(config, transport))
        }
        Kind::OpenAiResponses => {
            let quirks = ResponsesQuirks {
                encrypted_reasoning: config.reasons,
                reasoning_summary: config.reasons,
            };
            let config = ResponsesConfig { name, base_url, api_key, quirks };
            Arc::new(Responses::new(config, transport))
        }
        Kind::Gemini => {
            let config = antiphon_gemini::GeminiConfig { name, base_url, api_key };
            Arc::new(Gemini::new(config, transport))
        }
    })
}

fn api_key(name: &str, config: &ProviderConfig) -> Result<Option<SecretString>, ProjectError> {
    match &config.key {
        Key::Set { key, .. } => Ok(Some(key.clone())),
        Key::NotNeeded => Ok(None),
        Key::Missing { variable } => Err(ProjectError::InvalidInput(format!(
            "the provider `{name}` needs a key: set {variable}, run `antiphon init`, or try `--model scripted/hello`"
        ))),
    }
}

/// Refuses to send the key of one built-in provider to another: it would not be accepted there, and would be known.
fn check_owner_of_key(name: &str, config: &ProviderConfig) -> Result<(), ProjectError> {
    let Key::Set { key, variable } = &config.key else { return Ok(()) };
    let wanted = config.kind.built_in_provider();
    let is_theirs = built_in_address(wanted) == Some(config.base_url.trim_end_matches('/'));
    let Some(owner) = provider_of_key(key.expose_secret()).filter(|owner| *owner != wanted) else {
        return Ok(());
    };
    if !is_theirs {
        return Ok(());
    }
    let place = variable.as_deref().unwrap_or("the key in your settings");
    Err(ProjectError::InvalidInput(format!(
        "{place} looks like a key of {owner}, not of the provider `{name}`: set the right key, or use a model of {owner}"
    )))
}

fn read_script(path: &Path) -> Result<Script, ProjectError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        ProjectError::InvalidInput(format!("cannot read {}: {error}", path.display()))
    })?;
    Script::parse(&text)
        .map_err(|error| ProjectError::InvalidInput(format!("{}: {error}", path.display())))
}
