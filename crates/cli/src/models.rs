//! From the name of a model to somebody who can answer.
//!
//! A provider is stacked once and shared by its models: its connections, its limits and its
//! breaker are its own.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_anthropic::{Anthropic, CacheTtl};
use antiphon_core::{ModelRef, Provider, RawJson};
use antiphon_gemini::Gemini;
use antiphon_layers::{
    Breaker, BreakerConfig, Choice, Concurrency, Fallback, RateLimit, Retry, RetryConfig,
    TextCalls, Timeouts, TimeoutsConfig,
};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use antiphon_openai::{
    ChatCompletions, ChatConfig, ChatQuirks, Responses, ResponsesConfig, ResponsesQuirks,
};
use antiphon_scripted::{Recorder, Recording, Replay, Script, ScriptedProvider};
use secrecy::SecretString;

use crate::config::{Config, Key, Kind, Limits, ProviderConfig};
use crate::failure::Failure;
use crate::route::Route;

/// A model, its own fallbacks, and the way to it.
type Choosing = (ModelRef, Vec<ModelRef>, Route);

/// Everybody who can answer.
pub(crate) struct Models {
    config: Config,
    transport: OnceLock<Transport>,
    /// By model, its fallbacks and the way to it: providers that are shared are shared below.
    chosen: Mutex<HashMap<Choosing, Arc<dyn Provider>>>,
    /// By name, and by whether it writes tool calls as text.
    stacked: Mutex<HashMap<(String, bool), Arc<dyn Provider>>>,
}

impl Models {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            transport: OnceLock::new(),
            chosen: Mutex::default(),
            stacked: Mutex::default(),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Who answers for `model`, with its configured fallbacks.
    pub(crate) fn provider(
        &self,
        model: &ModelRef,
        route: &Route,
    ) -> Result<Arc<dyn Provider>, Failure> {
        self.backed(model, &[], route)
    }

    /// Who answers for `model`, with these fallbacks or else the configured ones.
    fn backed(
        &self,
        model: &ModelRef,
        own: &[ModelRef],
        route: &Route,
    ) -> Result<Arc<dyn Provider>, Failure> {
        let place = (model.clone(), own.to_vec(), route.clone());
        if let Some(provider) = self.chosen().get(&place) {
            return Ok(Arc::clone(provider));
        }
        let first = self.choice(model, route)?;
        let configured = self.config.models.get(model).map(|m| m.fallbacks.as_slice());
        let fallbacks = if own.is_empty() { configured.unwrap_or_default() } else { own };
        let provider = match fallbacks {
            [] => first.provider,
            others => {
                let others = others.iter().map(|other| self.choice(other, route));
                Arc::new(Fallback::new(first, others.collect::<Result<Vec<_>, _>>()?))
            }
        };
        self.chosen().insert(place, Arc::clone(&provider));
        Ok(provider)
    }

    fn chosen(&self) -> MutexGuard<'_, HashMap<Choosing, Arc<dyn Provider>>> {
        self.chosen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client for everything over HTTP, made when it is first needed.
    pub(crate) fn transport(&self) -> Result<&Transport, Failure> {
        if let Some(transport) = self.transport.get() {
            return Ok(transport);
        }
        let transport = Transport::new(&TransportConfig::default())
            .map_err(|error| Failure::failed(error.to_string()))?;
        Ok(self.transport.get_or_init(|| transport))
    }

    fn choice(&self, model: &ModelRef, route: &Route) -> Result<Choice, Failure> {
        Ok(Choice { model: model.clone(), provider: self.stack(model, route)? })
    }

    fn stack(&self, model: &ModelRef, route: &Route) -> Result<Arc<dyn Provider>, Failure> {
        if let Some(path) = &route.replay {
            let recording = Recording::load(path);
            let recording = recording.map_err(|error| Failure::usage(error.to_string()))?;
            return around(Arc::new(Replay::new(recording)), Limits::default(), route);
        }
        if model.provider() == "scripted" {
            let scripted = ScriptedProvider::new(self.script(model, route)?);
            return around(Arc::new(scripted), Limits::default(), route);
        }
        let name = model.provider();
        let as_text = self.config.models.get(model).is_some_and(|m| m.text_tool_calls);
        // A provider is shared by its models, unless this task has it in its own way.
        let shared = route.record.is_none() && route.retries.is_none();
        let mut stacked = self.stacked.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (name.to_owned(), as_text);
        if let Some(provider) = stacked.get(&place).filter(|_| shared) {
            return Ok(Arc::clone(provider));
        }
        let config = self.config.providers.get(name).ok_or_else(|| self.unknown_provider(name))?;
        let mut provider = bare(name, config, self.transport()?.clone())?;
        if as_text {
            provider = Arc::new(TextCalls::new(provider));
        }
        let provider = around(provider, config.limits, route)?;
        if shared {
            stacked.insert(place, Arc::clone(&provider));
        }
        Ok(provider)
    }

    /// What a scripted model says: the task's own script, the user's, or a built-in one.
    fn script(&self, model: &ModelRef, route: &Route) -> Result<Script, Failure> {
        let own = self.config.scripts.get(model.model());
        if let Some(path) = route.script.as_ref().or(own) {
            return read_script(path);
        }
        Script::builtin(model.model()).ok_or_else(|| {
            Failure::usage(format!(
                "there is no built-in script `{}`: use one of {}, --script FILE, or [scripts] in {}",
                model.model(),
                Script::BUILTIN.join(", "),
                self.config.path.display()
            ))
        })
    }

    fn unknown_provider(&self, name: &str) -> Failure {
        let known: Vec<&str> = self.config.providers.keys().map(String::as_str).collect();
        Failure::usage(format!(
            "there is no provider `{name}`: use scripted, {}, or add [providers.{name}] to {}",
            known.join(", "),
            self.config.path.display()
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
        self.backed(model, fallbacks, &Route::of(route)?).map_err(|failure| failure.to_string())
    }

    fn default_model(&self) -> Option<ModelRef> {
        self.config.chosen_model().cloned()
    }

    fn window_tokens(&self, model: &ModelRef) -> Option<u64> {
        self.config.windows().of(model)
    }
}

/// The layers of a provider, in the order their crate gives.
fn around(
    mut bare: Arc<dyn Provider>,
    limits: Limits,
    route: &Route,
) -> Result<Arc<dyn Provider>, Failure> {
    if let Some(path) = &route.record {
        let recorder = Recorder::append(bare, path);
        bare = Arc::new(recorder.map_err(|error| Failure::usage(error.to_string()))?);
    }
    let seconds = |s: Option<NonZeroU32>, default: Duration| {
        s.map_or(default, |s| Duration::from_secs(u64::from(s.get())))
    };
    let patience = TimeoutsConfig::default();
    let patience = TimeoutsConfig {
        first_byte: seconds(limits.first_byte_s, patience.first_byte),
        stall: seconds(limits.stall_s, patience.stall),
    };
    let mut provider: Arc<dyn Provider> = Arc::new(Timeouts::new(bare, patience));
    if let Some(requests) = limits.requests_per_minute {
        provider = Arc::new(RateLimit::per_minute(provider, requests));
    }
    let retry = RetryConfig::default();
    let retries_max = route.retries.or(limits.retries).unwrap_or(retry.retries_max);
    provider = Arc::new(Retry::new(provider, RetryConfig { retries_max, ..retry }));
    provider = Arc::new(Breaker::new(provider, BreakerConfig::default()));
    if let Some(limit) = limits.concurrency {
        provider = Arc::new(Concurrency::new(provider, limit));
    }
    Ok(provider)
}

/// The provider itself, without anything around it.
fn bare(
    name: &str,
    config: &ProviderConfig,
    transport: Transport,
) -> Result<Arc<dyn Provider>, Failure> {
    let base_url = Endpoint::parse(&config.base_url)
        .map_err(|error| Failure::usage(format!("the provider `{name}`: {error}")))?;
    let api_key = api_key(name, config)?;
    let name = name.to_owned();
    Ok(match config.kind {
        Kind::Anthropic => {
            let cache = Some(CacheTtl::FiveMinutes);
            let config = antiphon_anthropic::Config { name, base_url, api_key, cache };
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
            let config = antiphon_gemini::Config { name, base_url, api_key };
            Arc::new(Gemini::new(config, transport))
        }
    })
}

fn api_key(name: &str, config: &ProviderConfig) -> Result<Option<SecretString>, Failure> {
    match &config.key {
        Key::Set { key, .. } => Ok(Some(key.clone())),
        Key::NotNeeded => Ok(None),
        Key::Missing { variable } => Err(Failure::usage(format!(
            "the provider `{name}` needs a key: set {variable}, or try `--model scripted/hello`"
        ))),
    }
}

fn read_script(path: &Path) -> Result<Script, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    Script::parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
