//! Chat Completions.

mod dialect;
mod request;

use antiphon_core::{IdRule, ModelRef, PieceSource, Provider, ProviderError, Request};
use antiphon_model_transport::{EncodedParts, Endpoint, Post, Transport};
use secrecy::SecretString;

use dialect::ChatDialect;

/// The server and its settings.
#[derive(Debug, Clone)]
pub struct ChatConfig {
    /// Name of the provider in model names, such as `openai`.
    pub name: String,
    /// Base address, including `/v1` where the server has it.
    pub base_url: Endpoint,
    /// API key; absent where none is required.
    pub api_key: Option<SecretString>,
    /// How the server deviates from OpenAI.
    pub quirks: ChatQuirks,
}

/// Differences between compatible servers. The default is OpenAI itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatQuirks {
    /// Name of the field with the token limit of the answer.
    pub max_tokens_field: MaxTokensField,
    /// What is sent for an answer with calls and without text. Never `null`.
    pub empty_content: EmptyContent,
    /// Whether to request token counts. Most servers support it, a few refuse it; without it, usage
    /// is zero unless the server counts on its own.
    pub stream_usage: bool,
    /// Whether to send a thinking budget as `reasoning_effort`. Models that do not reason refuse
    /// it, so it is off by default.
    pub reasoning_effort: bool,
    /// Whether to send the model's own thinking back with its calls, as `reasoning_content`.
    /// DeepSeek requires it; other servers do not know the field.
    pub echo_reasoning: bool,
    /// Which ids of calls the server accepts. Mistral requires nine letters and digits.
    pub ids: IdRule,
}

/// Name of the field with the token limit of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_completion_tokens`: OpenAI, whose newer models refuse the other.
    MaxCompletionTokens,
    /// `max_tokens`: nearly every other server.
    MaxTokens,
}

/// What is sent for an answer with calls and without text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyContent {
    /// The field is omitted.
    Omitted,
    /// `""`, for servers that require the field.
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
    /// Settings for most servers other than OpenAI.
    pub fn compatible() -> Self {
        Self { max_tokens_field: MaxTokensField::MaxTokens, ..Self::default() }
    }

    /// Settings for the server at this address, as far as it is known.
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
    encoded: EncodedParts,
}

impl ChatCompletions {
    /// Creates a provider on a shared transport.
    pub fn new(config: ChatConfig, transport: Transport) -> Self {
        Self { config, transport, encoded: EncodedParts::default() }
    }

    fn post(&self, request: &Request) -> Result<(Post, ChatDialect), ProviderError> {
        let model = ModelRef::parse(&format!("{}/{}", self.config.name, request.model))
            .map_err(|error| ProviderError::InvalidRequest { message: error.to_string() })?;
        let body = request::body(request, &model, self.config.quirks, &self.encoded)?;
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
            Err(error) => antiphon_model_transport::failed_source(error),
        }
    }
}
