//! Responses, stateless: each request contains the whole conversation, and the server stores
//! nothing.

mod dialect;
mod items;
mod request;

use antiphon_core::{ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{EncodedParts, Endpoint, Post, Transport};
use secrecy::SecretString;

use dialect::ResponsesDialect;

/// The server and its settings.
#[derive(Debug, Clone)]
pub struct ResponsesConfig {
    /// Name of the provider in model names, such as `openai`.
    pub name: String,
    /// Base address, including `/v1` where the server has it.
    pub base_url: Endpoint,
    /// API key; absent where none is required.
    pub api_key: Option<SecretString>,
    /// How the server or model deviates from the default.
    pub quirks: ResponsesQuirks,
}

/// Differences between servers and models. The default is OpenAI with a reasoning model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponsesQuirks {
    /// Whether to request the model's reasoning in the encrypted form that can be sent back. Models
    /// that do not reason refuse the request.
    pub encrypted_reasoning: bool,
    /// Whether to request a summary of the reasoning when the request has a thinking budget. OpenAI
    /// refuses it to unverified organizations.
    pub reasoning_summary: bool,
}

impl Default for ResponsesQuirks {
    fn default() -> Self {
        Self { encrypted_reasoning: true, reasoning_summary: true }
    }
}

/// The Responses API.
#[derive(Debug, Clone)]
pub struct Responses {
    config: ResponsesConfig,
    transport: Transport,
    encoded: EncodedParts,
}

impl Responses {
    /// Creates a provider on a shared transport.
    pub fn new(config: ResponsesConfig, transport: Transport) -> Self {
        Self { config, transport, encoded: EncodedParts::default() }
    }

    fn post(&self, request: &Request) -> Result<(Post, ResponsesDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.quirks, &self.encoded)?;
        let mut post = Post::json(self.config.base_url.at("/responses"), body);
        if let Some(key) = &self.config.api_key {
            post = post.secret("authorization", "Bearer ", key);
        }
        Ok((post, ResponsesDialect::new(model)))
    }
}

impl Provider for Responses {
    fn open(&self, request: Request) -> PieceSource {
        match self.post(&request) {
            Ok((post, dialect)) => self.transport.stream(post, dialect),
            Err(error) => antiphon_model_transport::failed_source(error),
        }
    }
}
