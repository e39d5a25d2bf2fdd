//! Host names of the server. A foreign page whose name was made to resolve to this machine (DNS rebinding)
//! sends its own name in `Host` and `Origin`, and is refused.

use std::net::SocketAddr;

use axum::http::uri::Authority;

use crate::connection::listeners::ListenerKind;

/// Names of the loopback, which no foreign page can have.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The host name that clients of the Unix socket send.
const SOCKET_HOST: &str = "localhost";

/// URL scheme of the TCP listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlScheme {
    Http,
    Https,
}

impl UrlScheme {
    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Host names of the server.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Own names with their port, as `name:port`.
    own: Vec<String>,
    /// Configured names, with or without a port.
    configured: Vec<String>,
    /// The port of a host without one.
    default_port: u16,
}

impl Hosts {
    /// The names of a server that listens on `address`, and the configured names.
    pub(crate) fn new(
        address: Option<SocketAddr>,
        scheme: UrlScheme,
        configured: &[String],
    ) -> Self {
        let mut own = Vec::new();
        if let Some(address) = address {
            own.extend(LOOPBACK.map(|name| format!("{name}:{}", address.port())));
            own.extend((!address.ip().is_unspecified()).then(|| address.to_string()));
        }
        let configured = configured.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
        Self { own, configured, default_port: scheme.default_port() }
    }

    /// Whether `Host` names this server. The Unix socket needs no port.
    pub(crate) fn has_host(&self, host: &str, listener: ListenerKind) -> bool {
        let local = listener == ListenerKind::Unix && host.eq_ignore_ascii_case(SOCKET_HOST);
        local || self.has(host, self.default_port)
    }

    fn has(&self, host: &str, default_port: u16) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16().unwrap_or(default_port);
        let whole = format!("{name}:{port}");
        self.own.contains(&whole)
            || self.configured.contains(&whole)
            || self.configured.contains(&name)
    }

    /// Whether `Origin` names this server.
    pub(crate) fn has_origin(&self, origin: &str) -> bool {
        [("https://", UrlScheme::Https), ("http://", UrlScheme::Http)].iter().any(
            |(prefix, scheme)| {
                let host = origin.strip_prefix(prefix);
                host.is_some_and(|host| self.has(host, scheme.default_port()))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, configured: &[&str]) -> Hosts {
        let configured: Vec<String> = configured.iter().map(|&name| name.to_owned()).collect();
        Hosts::new(address.parse().ok(), UrlScheme::Http, &configured)
    }

    #[test]
    fn only_loopback_names_with_the_own_port_match() {
        let hosts = hosts("127.0.0.1:7117", &[]);
        for own in ["localhost:7117", "LOCALHOST:7117", "127.0.0.1:7117", "[::1]:7117"] {
            assert!(hosts.has_host(own, ListenerKind::Tcp), "{own}");
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
            assert!(!hosts.has_host(foreign, ListenerKind::Tcp), "{foreign}");
        }
    }

    #[test]
    fn configured_names_match_with_their_port_or_with_any() {
        let hosts = hosts("0.0.0.0:7117", &["Team.Example", "other.example:8443"]);
        for own in ["team.example", "team.example:9", "other.example:8443"] {
            assert!(hosts.has_host(own, ListenerKind::Tcp), "{own}");
        }
        for foreign in ["other.example", "other.example:1", "0.0.0.0:7117"] {
            assert!(!hosts.has_host(foreign, ListenerKind::Tcp), "{foreign}");
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
    fn tls_has_another_default_port() {
        let address = "127.0.0.1:443".parse().ok();
        let hosts = Hosts::new(address, UrlScheme::Https, &[]);
        assert!(hosts.has_host("localhost", ListenerKind::Tcp));
        assert!(hosts.has_origin("https://localhost"));
        assert!(!hosts.has_host("localhost:80", ListenerKind::Tcp));
        assert!(!hosts.has_origin("http://localhost"));
    }

    #[test]
    fn on_a_unix_socket_localhost_needs_no_port_and_no_other_name_is_accepted() {
        for address in [None, "127.0.0.1:7117".parse().ok()] {
            let hosts = Hosts::new(address, UrlScheme::Http, &[]);
            assert!(hosts.has_host("localhost", ListenerKind::Unix));
            for foreign in ["evil.example", "localhost:80", "", "localhost@evil", "localhost."] {
                assert!(!hosts.has_host(foreign, ListenerKind::Unix), "{foreign}");
            }
            assert!(!hosts.has_host("localhost", ListenerKind::Tcp));
        }
    }
}
