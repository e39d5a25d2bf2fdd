//! Agent cards, each signed with the server's key. A card is public when the user lists the exposed agents; the extended
//! card needs credentials.

use std::collections::HashMap;
use std::sync::Arc;

use a2a::{
    AgentCapabilities, AgentCard, AgentInterface, AgentSkill, HttpAuthSecurityScheme,
    SecurityScheme, TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC, VERSION,
};
use antiphon_core::{AgentDefinition, AgentName};
use antiphon_interface_transport::AppState;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::A2a;
use crate::bindings::{Binding, agent_name};
use crate::card_key::canonical;
use crate::error::A2aError;
use crate::message::INPUT_MODES;

/// The card of the first exposed agent.
pub(crate) const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// The card of an agent.
pub(crate) const OF_AGENT: &str = "/a2a/{agent}/.well-known/agent-card.json";

/// The public key that cards are signed with.
pub(crate) const PUBLIC_KEY: &str = "/.well-known/jwks.json";

/// Routes of cards.
pub(crate) const ROUTES: [&str; 3] = [WELL_KNOWN, OF_AGENT, PUBLIC_KEY];

/// Name of the security scheme.
const BEARER: &str = "bearer";

/// The level that a key needs. An empty list would be signed differently by different SDKs.
const LEVEL: &str = "write";

/// How long a client may use what it has read.
const CACHE: [(HeaderName, &str); 1] = [(CACHE_CONTROL, "private, max-age=60")];

/// `GET /.well-known/agent-card.json`.
pub(crate) async fn first(
    State(state): State<Arc<AppState>>,
    Extension(a2a): Extension<A2a>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let visible = a2a.config.visible(&state, &parts);
    match visible.first() {
        Some(agent) => respond(&state, &a2a, &parts, agent),
        None => {
            let message = "no agent is exposed here: see docs/a2a.md";
            Binding::Http.error(&A2aError::no_agent(message))
        }
    }
}

/// `GET /a2a/{agent}/.well-known/agent-card.json`.
pub(crate) async fn of_agent(
    State(state): State<Arc<AppState>>,
    Extension(a2a): Extension<A2a>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    match a2a.config.find(&state, &parts, agent_name(&parts)) {
        Ok(agent) => respond(&state, &a2a, &parts, &agent),
        Err(error) => Binding::Http.error(&error),
    }
}

/// `GET /.well-known/jwks.json`.
pub(crate) async fn public_key(Extension(a2a): Extension<A2a>) -> Response {
    let kind = [(CONTENT_TYPE, "application/jwk-set+json")];
    (CACHE, kind, a2a.card_key.public().to_string()).into_response()
}

/// How much a card says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Public,
    /// With the tools and the model of the agent.
    Extended,
}

/// The extended card of an agent, signed.
pub(crate) fn extended(
    state: &AppState,
    a2a: &A2a,
    parts: &Parts,
    agent: &AgentName,
) -> Result<AgentCard, A2aError> {
    let card = card(state, a2a, parts, agent, Detail::Extended);
    let canonical = canonical(&card).map_err(|error| A2aError::internal(error.to_string()))?;
    signed(a2a, parts, card, &canonical)
}

fn signed(
    a2a: &A2a,
    parts: &Parts,
    card: AgentCard,
    canonical: &[u8],
) -> Result<AgentCard, A2aError> {
    let public_url = format!("{}{PUBLIC_KEY}", a2a.config.base_url(parts));
    let signature = a2a.card_key.sign(canonical, &public_url);
    let signature = signature.map_err(|_| A2aError::internal("the card cannot be signed"))?;
    Ok(AgentCard { signatures: Some(vec![signature]), ..card })
}

/// The card of an agent, unsigned.
fn card(
    state: &AppState,
    a2a: &A2a,
    parts: &Parts,
    agent: &AgentName,
    detail: Detail,
) -> AgentCard {
    let defined = state.deps.task_factory.defined().into_iter().map(|defined| defined.definition);
    let definition = defined.into_iter().find(|defined| defined.name == *agent);
    let about = definition.as_ref().map_or("", |defined| defined.description.trim());
    let description =
        if about.is_empty() { format!("The agent {agent}.") } else { about.to_owned() };
    let url = format!("{}/a2a/{agent}", a2a.config.base_url(parts));
    let interface = |binding: &str| AgentInterface {
        url: url.clone(),
        protocol_binding: binding.to_owned(),
        protocol_version: VERSION.to_owned(),
        tenant: None,
    };
    let modes = |modes: &[&str]| modes.iter().map(|mode| (*mode).to_owned()).collect();
    let scheme = HttpAuthSecurityScheme {
        scheme: "Bearer".to_owned(),
        description: Some("The server's token, or an API key.".to_owned()),
        bearer_format: None,
    };
    let security = HashMap::from([(BEARER.to_owned(), SecurityScheme::HttpAuth(scheme))]);
    AgentCard {
        name: agent.to_string(),
        description: description.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        supported_interfaces: vec![
            interface(TRANSPORT_PROTOCOL_JSONRPC),
            interface(TRANSPORT_PROTOCOL_HTTP_JSON),
        ],
        capabilities: AgentCapabilities {
            streaming: Some(true),
            push_notifications: Some(true),
            extensions: None,
            extended_agent_card: Some(true),
        },
        default_input_modes: modes(&INPUT_MODES),
        default_output_modes: modes(&["text/plain", "application/json", "text/x-diff"]),
        skills: skills(agent, &description, definition.as_deref(), detail),
        provider: None,
        documentation_url: None,
        icon_url: None,
        security_schemes: Some(security),
        security_requirements: Some(vec![HashMap::from([(BEARER.to_owned(), modes(&[LEVEL]))])]),
        signatures: None,
    }
}

fn skills(
    agent: &AgentName,
    description: &str,
    definition: Option<&AgentDefinition>,
    detail: Detail,
) -> Vec<AgentSkill> {
    let mut tags = vec!["agent".to_owned()];
    if let (Detail::Extended, Some(definition)) = (detail, definition) {
        tags.extend(definition.model.iter().map(|model| format!("model:{model}")));
        let tools = definition.tools.iter().flatten();
        tags.extend(tools.map(|tool| format!("tool:{tool}")));
    }
    vec![AgentSkill {
        id: agent.to_string(),
        name: agent.to_string(),
        description: description.to_owned(),
        tags,
        examples: None,
        input_modes: None,
        output_modes: None,
        security_requirements: None,
    }]
}

/// The public card. A signature differs each time: the tag is that of what is signed, and by which key.
fn respond(state: &AppState, a2a: &A2a, parts: &Parts, agent: &AgentName) -> Response {
    let card = card(state, a2a, parts, agent, Detail::Public);
    let Ok(canonical) = canonical(&card) else {
        return Binding::Http.error(&A2aError::internal("the card cannot be written"));
    };
    let digest = Sha256::new().chain_update(a2a.card_key.id()).chain_update(&canonical).finalize();
    let tag = format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(digest));
    let known =
        parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response = if known {
        (StatusCode::NOT_MODIFIED, CACHE).into_response()
    } else {
        match signed(a2a, parts, card, &canonical) {
            Ok(card) => (CACHE, Json(card)).into_response(),
            Err(error) => return Binding::Http.error(&error),
        }
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}
