//! The models that the user can name: those that a provider lists, and those with a price. Asking also shows whether
//! the provider answers and accepts the key.

use std::collections::BTreeSet;
use std::time::Duration;

use antiphon_core::port::TimeoutPhase;
use antiphon_core::{ModelRef, Price, ProviderError};
use antiphon_model_transport::{Endpoint, Post, Transport};
use serde::{Deserialize, Serialize};

use crate::error::ProjectError;
use crate::models::Models;
use crate::settings::{Key, Kind, ProviderConfig};

/// How long a provider may take to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    data: Vec<Entry>,
    #[serde(default)]
    models: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    name: Option<String>,
}

/// A model that the user can name.
#[derive(Debug, Serialize)]
pub struct KnownModel {
    /// Its name.
    pub model: ModelRef,
    /// Whether its provider has a key or needs none.
    pub configured: bool,
    /// Its price; absent when it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

/// Which models of a provider are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource {
    /// Those that it lists, if it has a key or needs none, and those with a price.
    Provider,
    /// Those with a price. No provider is asked.
    Prices,
}

/// The models of a provider, by name, with the error of a provider that could not be asked.
pub async fn known_models(
    models: &Models,
    name: &str,
    provider: &ProviderConfig,
    source: ModelSource,
) -> Result<(Vec<KnownModel>, Option<ProviderError>), ProjectError> {
    let configured = !matches!(provider.key, Key::Missing { .. });
    let listed = match source {
        ModelSource::Provider if configured => list_models(provider, models.transport()?).await,
        ModelSource::Provider | ModelSource::Prices => Ok(Vec::new()),
    };
    let (listed, error) = match listed {
        Ok(listed) => (listed, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let listed = listed.iter().filter_map(|it| ModelRef::parse(&format!("{name}/{it}")).ok());
    let prices = &models.settings().prices;
    let of_provider = prices.iter().map(|(model, _)| model).filter(|it| it.provider() == name);
    let names: BTreeSet<ModelRef> = listed.chain(of_provider.cloned()).collect();
    let known = names.into_iter().map(|model| KnownModel {
        configured,
        price: prices.price(&model),
        model,
    });
    Ok((known.collect(), error))
}

/// Names of the models that a provider lists.
pub async fn list_models(
    config: &ProviderConfig,
    transport: &Transport,
) -> Result<Vec<String>, ProviderError> {
    let base = Endpoint::parse(&config.base_url)
        .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
    let listing = tokio::time::timeout(LIST_TIMEOUT, transport.get(post(config, &base)))
        .await
        .map_err(|_| ProviderError::Timeout { phase: TimeoutPhase::FirstByte })??;
    let listing: Listing = serde_json::from_str(&listing).map_err(|error| {
        ProviderError::Protocol { message: format!("invalid list of models: {error}") }
    })?;
    let entries = if listing.data.is_empty() { listing.models } else { listing.data };
    let names = entries.into_iter().filter_map(|entry| entry.id.or(entry.name));
    Ok(names.map(|name| name.trim_start_matches("models/").to_owned()).collect())
}

fn post(config: &ProviderConfig, base: &Endpoint) -> Post {
    let (path, header, prefix) = match config.kind {
        Kind::Anthropic => ("/v1/models", "x-api-key", ""),
        Kind::OpenAi | Kind::OpenAiResponses => ("/models", "authorization", "Bearer "),
        Kind::Gemini => ("/v1beta/models", "x-goog-api-key", ""),
    };
    let mut post = Post::json(base.at(path), Vec::new());
    if config.kind == Kind::Anthropic {
        post = post.header("anthropic-version", "2023-06-01");
    }
    match &config.key {
        Key::Set { key, .. } => post.secret(header, prefix, key),
        Key::Missing { .. } | Key::NotNeeded => post,
    }
}
