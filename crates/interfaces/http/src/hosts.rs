//! The names a server goes by. A page of somebody else that had its own name resolved to this
//! machine shows that name in `Host` and in `Origin`, and is turned away.

use std::net::SocketAddr;

use axum::http::uri::Authority;

use crate::listeners::Via;

/// Names that mean this machine, and nobody else's page.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The name that whoever connects to a socket gives.
const SOCKET_HOST: &str = "localhost";

/// What is spoken at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http,
    Https,
}

impl Speaks {
    fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The names a server goes by.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// With its port, as `name:port`.
    own: Vec<String>,
    /// As they were configured, with a port or without.
    configured: Vec<String>,
    /// The port that everybody means who names none.
    usual_port: u16,
}

impl Hosts {
    /// Those of a server on this address, and those that were configured.
    pub(crate) fn new(address: Option<SocketAddr>, scheme: Speaks, configured: &[String]) -> Self {
        let mut own = Vec::new();
        if let Some(address) = address {
            own.extend(LOOPBACK.map(|name| format!("{name}:{}", address.port())));
            own.extend((!address.ip().is_unspecified()).then(|| address.to_string()));
        }
        let configured = configured.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
        Self { own, configured, usual_port: scheme.usual_port() }
    }

    /// Whether this is one of them, as it stands in `Host`. On a socket nobody needs a port.
    pub(crate) fn has_host(&self, host: &str, via: Via) -> bool {
        let local = via == Via::Socket && host.eq_ignore_ascii_case(SOCKET_HOST);
        local || self.has(host, self.usual_port)
    }

    fn has(&self, host: &str, usual_port: u16) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(usual_port);
        let whole = format!("{name}:{port}");
        self.own.contains(&whole)
            || self.configured.contains(&whole)
            || self.configured.contains(&name)
    }

    /// Whether this is one of them, as it stands in `Origin`.
    pub(crate) fn has_origin(&self, origin: &str) -> bool {
        [("https://", Speaks::Https), ("http://", Speaks::Http)].iter().any(|(prefix, scheme)| {
            let host = origin.strip_prefix(prefix);
            host.is_some_and(|host| self.has(host, scheme.usual_port()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, configured: &[&str]) -> Hosts {
        let configured: Vec<String> = configured.iter().map(|&name| name.to_owned()).collect();
        Hosts::new(address.parse().ok(), Speaks::Http, &configured)
    }

    #[test]
    fn only_the_names_of_this_machine_with_its_port_are_its_own() {
        let hosts = hosts("127.0.0.1:7117", &[]);
        for own in ["localhost:7117", "LOCALHOST:7117", "127.0.0.1:7117", "[::1]:7117"] {
            assert!(hosts.has_host(own, Via::Address), "{own}");
        }
        for foreign in [
            "evil.example:7117",
            "localhost",
            "localhost:80",
            "127.0.0.1:7118",
            "",
            "localhost:7117@evil",
            "evil@localhost:7117",
            "localhost.evil.example:7117",
            "localhost:7117:7117",
            "127.1:7117",
        ] {
            assert!(!hosts.has_host(foreign, Via::Address), "{foreign}");
        }
    }

    #[test]
    fn configured_names_hold_with_their_port_or_with_any() {
        let hosts = hosts("0.0.0.0:7117", &["Team.Example", "other.example:8443"]);
        for own in ["team.example", "team.example:9", "other.example:8443"] {
            assert!(hosts.has_host(own, Via::Address), "{own}");
        }
        for foreign in ["other.example", "other.example:1", "0.0.0.0:7117"] {
            assert!(!hosts.has_host(foreign, Via::Address), "{foreign}");
        }
        assert!(hosts.has_origin("https://team.example"));
        assert!(hosts.has_origin("https://other.example:8443"));
        for foreign in
            ["https://other.example", "null", "file://team.example", "http://evil.example"]
        {
            assert!(!hosts.has_origin(foreign), "{foreign}");
        }
    }

    #[test]
    fn who_speaks_tls_is_meant_without_a_port_at_another_one() {
        let address = "127.0.0.1:443".parse().ok();
        let hosts = Hosts::new(address, Speaks::Https, &[]);
        assert!(hosts.has_host("localhost", Via::Address));
        assert!(hosts.has_origin("https://localhost"));
        assert!(!hosts.has_host("localhost:80", Via::Address));
        assert!(!hosts.has_origin("http://localhost"));
    }

    #[test]
    fn on_a_socket_localhost_needs_no_port_and_nothing_else_is_meant() {
        for address in [None, "127.0.0.1:7117".parse().ok()] {
            let hosts = Hosts::new(address, Speaks::Http, &[]);
            assert!(hosts.has_host("localhost", Via::Socket));
            for foreign in ["evil.example", "localhost:80", "", "localhost@evil", "localhost."] {
                assert!(!hosts.has_host(foreign, Via::Socket), "{foreign}");
            }
            assert!(!hosts.has_host("localhost", Via::Address));
        }
    }
}
