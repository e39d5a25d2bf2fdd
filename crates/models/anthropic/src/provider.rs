//! The provider.

use std::num::NonZeroU32;

use antiphon_core::{ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{EncodedParts, Endpoint, Post, Transport};
use secrecy::SecretString;

use crate::dialect::MessagesDialect;
use crate::request;

/// Base address of the Anthropic API.
pub const DEFAULT_URL: &str = "https://api.anthropic.com";

/// The wire requires a token limit. This one, plus the thinking budget, is sent when the request
/// has none.
pub const DEFAULT_MAX_TOKENS: NonZeroU32 = NonZeroU32::new(16_384).unwrap();

/// The server and its settings.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// Name of the provider in model names, such as `anthropic`.
    pub name: String,
    /// Base address, without `/v1`.
    pub base_url: Endpoint,
    /// API key; absent where none is required.
    pub api_key: Option<SecretString>,
    /// How long the server caches the prompt; `None` disables prompt caching.
    pub cache: Option<CacheTtl>,
}

/// Lifetime of a cached prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTtl {
    /// Five minutes after its last use.
    FiveMinutes,
    /// An hour after its last use; writing costs more.
    OneHour,
}

/// The Anthropic Messages API.
#[derive(Debug, Clone)]
pub struct Anthropic {
    config: AnthropicConfig,
    transport: Transport,
    encoded: EncodedParts,
}

impl Anthropic {
    /// Creates a provider on a shared transport.
    pub fn new(config: AnthropicConfig, transport: Transport) -> Self {
        Self { config, transport, encoded: EncodedParts::default() }
    }

    fn post(&self, request: &Request) -> Result<(Post, MessagesDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.cache, &self.encoded)?;
        let mut post = Post::json(self.config.base_url.at("/v1/messages"), body)
            .header("anthropic-version", "2023-06-01");
        if let Some(key) = &self.config.api_key {
            post = post.secret("x-api-key", "", key);
        }
        Ok((post, MessagesDialect::new(model)))
    }
}

impl Provider for Anthropic {
    fn open(&self, request: Request) -> PieceSource {
        match self.post(&request) {
            Ok((post, dialect)) => self.transport.stream(post, dialect),
            Err(error) => antiphon_model_transport::failed_source(error),
        }
    }
}
