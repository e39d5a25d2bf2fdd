//! The provider.

use std::num::NonZeroU32;

use antiphon_core::{ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{Endpoint, Post, Transport};
use secrecy::SecretString;

use crate::dialect::MessagesDialect;
use crate::request;

/// Where Anthropic is.
pub const DEFAULT_URL: &str = "https://api.anthropic.com";

/// The wire needs a limit; this one, beside what may be thought, is sent when the request has
/// none.
pub const DEFAULT_MAX_TOKENS: NonZeroU32 = NonZeroU32::new(16_384).unwrap();

/// Which server, and how to talk to it.
#[derive(Debug, Clone)]
pub struct Config {
    /// The provider's name in model names, `anthropic`.
    pub name: String,
    /// Where it is, without `/v1`.
    pub base_url: Endpoint,
    /// The key, where one is needed.
    pub api_key: Option<SecretString>,
    /// How long the server keeps the prompt it has read; `None` to mark nothing.
    pub cache: Option<CacheTtl>,
}

/// How long a prompt stays in the server's cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTtl {
    /// Five minutes from its last use.
    FiveMinutes,
    /// An hour from its last use; dearer to write.
    OneHour,
}

/// The Anthropic Messages API.
#[derive(Debug, Clone)]
pub struct Anthropic {
    config: Config,
    transport: Transport,
}

impl Anthropic {
    /// A provider on a shared transport.
    pub fn new(config: Config, transport: Transport) -> Self {
        Self { config, transport }
    }

    fn post(&self, request: &Request) -> Result<(Post, MessagesDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.cache)?;
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
            Err(error) => antiphon_model_transport::refused(error),
        }
    }
}
