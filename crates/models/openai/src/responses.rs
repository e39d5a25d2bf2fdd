//! Responses, without a memory on the server: each request holds the whole conversation and
//! nothing of it is stored.

mod dialect;
mod items;
mod request;

use antiphon_core::{ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{Endpoint, Post, Transport};
use secrecy::SecretString;

use dialect::ResponsesDialect;

/// Which server, and how to talk to it.
#[derive(Debug, Clone)]
pub struct ResponsesConfig {
    /// The provider's name in model names, `openai`.
    pub name: String,
    /// Where it is, with `/v1` where it has one.
    pub base_url: Endpoint,
    /// The key, where one is needed.
    pub api_key: Option<SecretString>,
    /// What is different about it.
    pub quirks: ResponsesQuirks,
}

/// Where servers and models on this wire differ. The default is OpenAI with a model that
/// reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponsesQuirks {
    /// Whether the model's reasoning is asked for in the sealed form in which it can be sent
    /// back. Models that do not reason refuse to be asked.
    pub sealed_reasoning: bool,
    /// Whether a summary of the reasoning is asked for when the request has a thinking budget.
    /// OpenAI refuses it to organizations that it has not verified.
    pub reasoning_summary: bool,
}

impl Default for ResponsesQuirks {
    fn default() -> Self {
        Self { sealed_reasoning: true, reasoning_summary: true }
    }
}

/// The Responses API.
#[derive(Debug, Clone)]
pub struct Responses {
    config: ResponsesConfig,
    transport: Transport,
}

impl Responses {
    /// A provider on a shared transport.
    pub fn new(config: ResponsesConfig, transport: Transport) -> Self {
        Self { config, transport }
    }

    fn post(&self, request: &Request) -> Result<(Post, ResponsesDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.quirks)?;
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
            Err(error) => antiphon_model_transport::refused(error),
        }
    }
}
