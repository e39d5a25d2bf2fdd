//! Addresses of remote agents: which ones the user's settings allow, and a client for one of them.
//!
//! Public `https` addresses are allowed. Another one is allowed when the user's own settings write it: as a literal
//! address or `localhost` in `card`, or as a rule in `hosts`. Link-local and metadata addresses are never reached.

use antiphon_outbound::{OutboundError, OutboundRules};
use url::{Host, Url};

use crate::failure::Failure;

/// The rules for a remote agent: the address of its card if it is a literal one, and the user's rules.
pub(crate) fn rules(card: &Url, hosts: &[String]) -> Result<OutboundRules, String> {
    let literal = match card.host() {
        Some(Host::Domain("localhost") | Host::Ipv4(_) | Host::Ipv6(_)) => {
            let host = card.host_str().unwrap_or_default();
            card.port_or_known_default().map(|port| format!("{host}:{port}"))
        }
        Some(Host::Domain(_)) | None => None,
    };
    let rules = literal.iter().chain(hosts).map(String::as_str);
    OutboundRules::parse(rules).map_err(|error| format!("`hosts`: {error}"))
}

/// Whether a token for this address stays secret on its way.
pub(crate) fn is_private(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || is_local
}

/// A client for the host of a URL, at addresses that are checked now.
pub(crate) async fn client(rules: &OutboundRules, url: &Url) -> Result<reqwest::Client, Failure> {
    rules.client(url).await.map_err(|error| match error {
        OutboundError::Unresolved { .. } => Failure::Unreachable(error.to_string()),
        OutboundError::Refused { reason } => Failure::Refused(format!(
            "its address is not allowed: {reason}. `hosts` of its settings can allow one more"
        )),
    })
}
