//! The card of a remote agent: read, checked, and reduced to the interface that is used.

use a2a::{TRANSPORT_PROTOCOL_HTTP_JSON, TRANSPORT_PROTOCOL_JSONRPC, VERSION};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::address;
use crate::failure::{Failure, words};
use crate::remote_agents::RemoteAgent;

/// Largest card, in bytes.
pub(crate) const CARD_BYTES_MAX: usize = 256 * 1024;

/// Interfaces of a card that are looked at, at most.
const INTERFACES_MAX: usize = 32;

/// How requests are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    HttpJson,
}

/// The interface of a remote agent that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentEndpoint {
    pub(crate) binding: Binding,
    pub(crate) url: Url,
    pub(crate) tenant: Option<String>,
    /// Whether it streams.
    pub(crate) streams: bool,
}

/// What is read of a card. Empty fields may be left out of one.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Card {
    #[expect(dead_code, reason = "a card without a name is none")]
    name: String,
    supported_interfaces: Vec<Interface>,
    #[serde(default)]
    capabilities: Capabilities,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    url: String,
    protocol_binding: String,
    protocol_version: String,
    #[serde(default)]
    tenant: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    streaming: bool,
}

/// Chooses the first interface of a card that this client speaks.
pub(crate) fn choose(agent: &RemoteAgent, bytes: &[u8]) -> Result<AgentEndpoint, Failure> {
    let refuse = |reason: String| Failure::Refused(format!("its card: {reason}"));
    let json: Value = serde_json::from_slice(bytes)
        .map_err(|error| refuse(format!("it is not JSON: {}", words(&error.to_string()))))?;
    if let Some(keys) = &agent.card_keys {
        keys.check(&json).map_err(refuse)?;
    }
    if json.get("supportedInterfaces").is_none() && json.get("url").is_some() {
        let version = json.get("protocolVersion").and_then(Value::as_str).unwrap_or("0.3");
        return Err(refuse(format!(
            "it speaks A2A {}, and this client only {VERSION}: name an agent of that version",
            words(version)
        )));
    }
    let card: Card =
        serde_json::from_value(json).map_err(|error| refuse(words(&error.to_string())))?;
    let mut reasons = Vec::new();
    for interface in card.supported_interfaces.iter().take(INTERFACES_MAX) {
        let binding = match interface.protocol_binding.as_str() {
            TRANSPORT_PROTOCOL_JSONRPC => Binding::JsonRpc,
            TRANSPORT_PROTOCOL_HTTP_JSON => Binding::HttpJson,
            other => {
                reasons.push(format!("`{}` is not supported", words(other)));
                continue;
            }
        };
        if !is_spoken(&interface.protocol_version) {
            let version = words(&interface.protocol_version);
            reasons.push(format!("it speaks A2A {version}, and this client only {VERSION}"));
            continue;
        }
        let url = check_url(agent, &interface.url).map_err(&refuse)?;
        return Ok(AgentEndpoint {
            binding,
            url,
            tenant: Some(interface.tenant.clone()).filter(|tenant| !tenant.is_empty()),
            streams: card.capabilities.streaming,
        });
    }
    let none = "it lists no interface".to_owned();
    Err(refuse(if reasons.is_empty() { none } else { reasons.join("; ") }))
}

fn is_spoken(version: &str) -> bool {
    version.split('.').next() == VERSION.split('.').next()
}

/// The address of an interface: at the host of the card, or at one that the user's settings name.
fn check_url(agent: &RemoteAgent, text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("its `url` is not an address: {error}"))?;
    let place = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (url.scheme().to_owned(), host, url.port_or_known_default())
    };
    let is_named = || {
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let plain = |rule: &String| rule.split('=').next().unwrap_or_default().to_owned();
        agent.hosts.iter().map(plain).any(|rule| rule == host || rule == format!("{host}:{port}"))
    };
    if place(&url) != place(&agent.card) && !is_named() {
        return Err(format!(
            "its interface is at another host ({}) than the card: if that is right, name the host in `hosts`",
            words(url.host_str().unwrap_or("none"))
        ));
    }
    if agent.credentials.is_some() && !address::is_private(&url) {
        return Err("the token would be sent in the clear to its interface".to_owned());
    }
    agent.rules.check(&url).map_err(|error| error.to_string())?;
    Ok(url)
}
