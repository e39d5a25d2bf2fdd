//! The provider.

use antiphon_core::{ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{EncodedParts, Endpoint, Post, Transport};
use secrecy::SecretString;

use crate::dialect::GenerateDialect;
use crate::request;

/// Base address of the Gemini API.
pub const DEFAULT_URL: &str = "https://generativelanguage.googleapis.com";

/// The server and its settings.
#[derive(Debug, Clone)]
pub struct GeminiConfig {
    /// Name of the provider in model names, such as `gemini`.
    pub name: String,
    /// Base address, without `/v1beta`.
    pub base_url: Endpoint,
    /// API key; absent where none is required.
    pub api_key: Option<SecretString>,
}

/// The Gemini API.
#[derive(Debug, Clone)]
pub struct Gemini {
    config: GeminiConfig,
    transport: Transport,
    encoded: EncodedParts,
}

impl Gemini {
    /// Creates a provider on a shared transport.
    pub fn new(config: GeminiConfig, transport: Transport) -> Self {
        Self { config, transport, encoded: EncodedParts::default() }
    }

    fn post(&self, request: &Request) -> Result<(Post, GenerateDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, &self.encoded)?;
        let mut post = Post::json(self.address(model.model())?, body);
        if let Some(key) = &self.config.api_key {
            post = post.secret("x-goog-api-key", "", key);
        }
        Ok((post, GenerateDialect::new(model)))
    }

    /// The model is part of the path, so its name must not change the path otherwise.
    fn address(&self, model: &str) -> Result<Endpoint, ProviderError> {
        if !model.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
            return Err(ProviderError::InvalidRequest {
                message: format!("`{model}` cannot be the name of a model here"),
            });
        }
        let path = format!("/v1beta/models/{model}:streamGenerateContent");
        Ok(self.config.base_url.at(&path).with_query("alt", "sse"))
    }
}

impl Provider for Gemini {
    fn open(&self, request: Request) -> PieceSource {
        match self.post(&request) {
            Ok((post, dialect)) => self.transport.stream(post, dialect),
            Err(error) => antiphon_model_transport::failed_source(error),
        }
    }
}
