//! HTTP to an address that another party named, such as a webhook of a client.
//!
//! A name is resolved once, each of its addresses is checked, and only these are connected to. No redirect is
//! followed and no proxy is used. Without a rule only public addresses over TLS are reached; a rule can allow one
//! host more, as `host:port`, `name=private` or `name=loopback` (see `antiphon-hosts`). Link-local and metadata
//! addresses are never reached.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use antiphon_hosts::{AddressClass, Host, HostError, HostPort, HostRule, host_rules};
use reqwest::redirect;
use url::Url;

/// How long a name may take to resolve.
const RESOLVE_WAIT: Duration = Duration::from_secs(5);

/// How long a connection may take.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 2048;

/// Hosts that the user allows beside public ones.
#[derive(Debug, Clone, Default)]
pub struct OutboundRules(Vec<HostRule>);

/// Why an address is not reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// Give another URL.
    #[error("{reason}")]
    Refused {
        /// What is wrong with it.
        reason: String,
    },
    /// Try again: the name does not resolve now.
    #[error("the host of the URL cannot be resolved: {reason}")]
    Unresolved {
        /// What the resolver says.
        reason: String,
    },
}

impl OutboundRules {
    /// Parses rules, each a host as in `antiphon-hosts`.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, HostError> {
        let mut parsed = Vec::new();
        for rule in rules {
            parsed.extend(host_rules(rule)?);
        }
        Ok(Self(parsed))
    }

    /// A client that connects to the host of `url` alone, at addresses that were checked now.
    pub async fn client(&self, url: &Url) -> Result<reqwest::Client, OutboundError> {
        let target = self.target(url)?;
        let addresses = resolve(&target).await?;
        for address in &addresses {
            self.check_address(&target, address.ip())?;
        }
        client(url, &target, &addresses)
    }

    /// Checks a URL as far as that is possible without resolving its name.
    pub fn check(&self, url: &Url) -> Result<(), OutboundError> {
        match self.target(url)? {
            HostPort { host: Host::Address(address), port } => {
                self.check_address(&HostPort { host: Host::Address(address), port }, address)
            }
            HostPort { host: Host::Name(_), .. } => Ok(()),
        }
    }

    fn target(&self, url: &Url) -> Result<HostPort, OutboundError> {
        if url.as_str().len() > URL_BYTES_MAX {
            return Err(refused(format!("the URL is longer than {URL_BYTES_MAX} bytes")));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("the URL must not contain a user name or a password"));
        }
        let host = url.host_str().ok_or_else(|| refused("the URL has no host"))?;
        let host = Host::parse(host).map_err(|error| refused(error.to_string()))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let target = HostPort { host, port };
        match url.scheme() {
            "https" => Ok(target),
            "http" if self.0.iter().any(|rule| rule.allows(&target)) => Ok(target),
            "http" => Err(refused("the URL must be an https URL")),
            _ => Err(refused("the URL must be an http or https URL")),
        }
    }

    fn check_address(&self, target: &HostPort, address: IpAddr) -> Result<(), OutboundError> {
        let class = AddressClass::of(address);
        let allowed = |rule: &HostRule| rule.allows(target) && rule.allows_class(class);
        if class == AddressClass::Public || self.0.iter().any(allowed) {
            return Ok(());
        }
        // Which address a name has inside of this network is not the sender's business.
        Err(refused("the host of the URL is not a public one"))
    }
}

/// A client that connects to the host of `url` alone, at those of its addresses that `allows` allows. The caller has
/// decided about the host.
pub async fn pinned_client(
    url: &Url,
    allows: impl Fn(&HostPort, IpAddr) -> bool,
) -> Result<reqwest::Client, OutboundError> {
    if url.as_str().len() > URL_BYTES_MAX {
        return Err(refused(format!("the URL is longer than {URL_BYTES_MAX} bytes")));
    }
    let target = HostPort::of_url(url).map_err(|error| refused(error.to_string()))?;
    let addresses = allowed_addresses(&target, resolve(&target).await?, allows)?;
    client(url, &target, &addresses)
}

/// Those addresses of a host that may be connected to: at least one.
fn allowed_addresses(
    target: &HostPort,
    mut addresses: Vec<SocketAddr>,
    allows: impl Fn(&HostPort, IpAddr) -> bool,
) -> Result<Vec<SocketAddr>, OutboundError> {
    addresses.retain(|address| allows(target, address.ip()));
    if addresses.is_empty() {
        return Err(refused(format!(
            "the host `{}` has no public address, and no other one is allowed",
            target.host
        )));
    }
    Ok(addresses)
}

fn refused(reason: impl Into<String>) -> OutboundError {
    OutboundError::Refused { reason: reason.into() }
}

async fn resolve(target: &HostPort) -> Result<Vec<SocketAddr>, OutboundError> {
    let name = match &target.host {
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, target.port)]),
        Host::Name(name) => name.as_str(),
    };
    let unresolved = |reason: String| OutboundError::Unresolved { reason };
    let found = tokio::time::timeout(RESOLVE_WAIT, tokio::net::lookup_host((name, target.port)));
    let found = found.await.map_err(|_| unresolved("it takes too long".to_owned()))?;
    let found: Vec<SocketAddr> = found.map_err(|error| unresolved(error.to_string()))?.collect();
    if found.is_empty() {
        return Err(unresolved("it has no address".to_owned()));
    }
    Ok(found)
}

fn client(
    url: &Url,
    target: &HostPort,
    addresses: &[SocketAddr],
) -> Result<reqwest::Client, OutboundError> {
    // Fails when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_WAIT)
        .redirect(redirect::Policy::none())
        .no_proxy();
    if let Host::Name(_) = target.host {
        // As the URL spells it: that is what the client looks up.
        builder = builder.resolve_to_addrs(url.host_str().unwrap_or_default(), addresses);
    }
    if url.scheme() == "http" {
        // Loading the certificates of the system takes long, and no connection needs one.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reach(rules: &[&str], url: &str) -> Result<(), String> {
        let rules = OutboundRules::parse(rules.iter().copied()).unwrap();
        let url = Url::parse(url).unwrap();
        rules.client(&url).await.map(drop).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn private_addresses_are_refused_in_every_spelling() {
        for host in [
            "127.0.0.1",
            "localhost",
            "2130706433",
            "0x7f.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[fd00::1]",
            "[fe80::1]",
            "[64:ff9b::7f00:1]",
        ] {
            assert!(reach(&[], &format!("https://{host}/hook")).await.is_err(), "{host}");
        }
        assert_eq!(reach(&[], "https://1.1.1.1/hook").await, Ok(()));
    }

    #[tokio::test]
    async fn a_rule_allows_the_host_it_names_and_no_other() {
        let rules = ["127.0.0.1:9000", "localhost:9001"];
        assert_eq!(reach(&rules, "http://127.0.0.1:9000/hook").await, Ok(()));
        assert_eq!(reach(&rules, "http://localhost:9001/hook").await, Ok(()));
        assert!(reach(&rules, "http://127.0.0.1:9001/hook").await.is_err());
        assert!(reach(&rules, "http://127.0.0.2:9000/hook").await.is_err());
        assert!(reach(&["169.254.169.254:80"], "http://169.254.169.254/").await.is_err());
    }

    #[test]
    fn a_name_is_reached_at_allowed_addresses_alone() {
        let target = HostPort::parse("inner.example.com", Some(443)).unwrap();
        let found = |addresses: &[&str]| -> Vec<SocketAddr> {
            addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 443)).collect()
        };
        let public = |_: &HostPort, address| AddressClass::of(address) == AddressClass::Public;
        for private in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"] {
            let refused = allowed_addresses(&target, found(&[private]), public);
            assert!(
                matches!(refused, Err(OutboundError::Refused { .. })),
                "{private}: {refused:?}"
            );
        }
        let both = allowed_addresses(&target, found(&["10.0.0.1", "1.1.1.1"]), public).unwrap();
        assert_eq!(both, found(&["1.1.1.1"]));
    }

    #[tokio::test]
    async fn a_pinned_client_takes_pages_alone() {
        for url in ["ftp://1.1.1.1/", "file:///etc/passwd", "https://user:pass@1.1.1.1/"] {
            let url = Url::parse(url).unwrap();
            assert!(pinned_client(&url, |_, _| true).await.is_err(), "{url}");
        }
        let local = Url::parse("http://127.0.0.1:1/").unwrap();
        assert!(pinned_client(&local, |_, _| false).await.is_err());
        assert!(pinned_client(&local, |_, _| true).await.is_ok());
    }

    #[tokio::test]
    async fn other_schemes_credentials_and_plain_text_are_refused() {
        for url in [
            "ftp://1.1.1.1/",
            "file:///etc/passwd",
            "http://1.1.1.1/",
            "https://user:pass@1.1.1.1/",
        ] {
            assert!(reach(&[], url).await.is_err(), "{url}");
        }
        let long = format!("https://1.1.1.1/{}", "x".repeat(URL_BYTES_MAX));
        assert!(reach(&[], &long).await.is_err());
    }
}
