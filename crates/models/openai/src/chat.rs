//! Chat Completions.

mod dialect;
mod request;

use antiphon_core::{IdRule, ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{Endpoint, Post, Transport};
use secrecy::SecretString;

use dialect::ChatDialect;

/// Which server, and how to talk to it.
#[derive(Debug, Clone)]
pub struct ChatConfig {
    /// The provider's name in model names, `openai`.
    pub name: String,
    /// Where it is, with `/v1` where it has one.
    pub base_url: Endpoint,
    /// The key, where one is needed.
    pub api_key: Option<SecretString>,
    /// What is different about it.
    pub quirks: ChatQuirks,
}

/// Where servers that speak this wire differ. The default is OpenAI itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatQuirks {
    /// Which field holds the longest answer wanted.
    pub max_tokens_field: MaxTokensField,
    /// What stands where an answer has calls but no text. No server is sent `null`.
    pub empty_content: EmptyContent,
    /// Whether it is asked to count tokens. Most servers understand the question, a few refuse
    /// it; without it usage stays zero where the server does not count on its own.
    pub stream_usage: bool,
    /// Whether a thinking budget is sent, as `reasoning_effort`. Models that do not reason
    /// refuse it, so it is off unless asked for.
    pub reasoning_effort: bool,
    /// Whether the model's own thinking goes back beside its calls, as `reasoning_content`.
    /// DeepSeek refuses a conversation without it, others do not know the field.
    pub echo_reasoning: bool,
    /// Which ids of calls it takes. Mistral wants nine letters and digits.
    pub ids: IdRule,
}

/// Which field holds the longest answer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_completion_tokens`: OpenAI, whose newer models refuse the other.
    MaxCompletionTokens,
    /// `max_tokens`: nearly everybody else.
    MaxTokens,
}

/// What stands where an answer has calls but no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyContent {
    /// Nothing: the field is left out.
    Omitted,
    /// `""`, for servers that want the field.
    EmptyText,
}

impl Default for ChatQuirks {
    fn default() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            empty_content: EmptyContent::Omitted,
            stream_usage: true,
            reasoning_effort: false,
            echo_reasoning: false,
            ids: crate::IDS,
        }
    }
}

impl ChatQuirks {
    /// What most servers beside OpenAI take.
    pub fn compatible() -> Self {
        Self { max_tokens_field: MaxTokensField::MaxTokens, ..Self::default() }
    }

    /// What the server at this address takes, as far as is known.
    pub fn at(base_url: &Endpoint) -> Self {
        match base_url.host() {
            "api.openai.com" => Self::default(),
            "api.deepseek.com" => Self { echo_reasoning: true, ..Self::compatible() },
            "api.mistral.ai" => Self { ids: IdRule::Exactly { bytes: 9 }, ..Self::compatible() },
            _ => Self::compatible(),
        }
    }
}

/// The Chat Completions API.
#[derive(Debug, Clone)]
pub struct ChatCompletions {
    config: ChatConfig,
    transport: Transport,
}

impl ChatCompletions {
    /// A provider on a shared transport.
    pub fn new(config: ChatConfig, transport: Transport) -> Self {
        Self { config, transport }
    }

    fn post(&self, request: &Request) -> Result<(Post, ChatDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.quirks)?;
        let mut post = Post::json(self.config.base_url.at("/chat/completions"), body);
        if let Some(key) = &self.config.api_key {
            post = post.secret("authorization", "Bearer ", key);
        }
        Ok((post, ChatDialect::new(model)))
    }
}

impl Provider for ChatCompletions {
    fn open(&self, request: Request) -> PieceSource {
        match self.post(&request) {
            Ok((post, dialect)) => self.transport.stream(post, dialect),
            Err(error) => antiphon_model_transport::refused(error),
        }
    }
}
