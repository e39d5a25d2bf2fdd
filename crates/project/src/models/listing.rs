//! The models a provider lists. Asking also shows whether it answers and accepts the key.

use std::time::Duration;

use antiphon_core::ProviderError;
use antiphon_core::port::TimeoutPhase;
use antiphon_model_transport::{Endpoint, Post, Transport};
use serde::Deserialize;

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
