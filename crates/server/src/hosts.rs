//! The names a server goes by. A page of somebody else that had its own name resolved to this
//! machine shows that name in `Host` and in `Origin`, and is turned away.

use std::net::SocketAddr;

use axum::http::uri::Authority;

/// Names that mean this machine, and nobody else's page.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names a server goes by.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// With its port, as `name:port`.
    own: Vec<String>,
    /// As they were configured, with a port or without.
    configured: Vec<String>,
}

impl Hosts {
    pub(crate) fn new(address: SocketAddr, configured: &[String]) -> Self {
        let port = address.port();
        let mut own: Vec<String> = LOOPBACK.iter().map(|name| format!("{name}:{port}")).collect();
        if !address.ip().is_unspecified() {
            own.push(address.to_string());
        }
        let configured = configured.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
        Self { own, configured }
    }

    /// Whether this is one of them, as it stands in `Host`.
    pub(crate) fn has_host(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host().to_ascii_lowercase();
        // Without one it is the port that everybody means.
        let port = authority.port_u16().unwrap_or(80);
        let whole = format!("{name}:{port}");
        self.own.contains(&whole)
            || self.configured.contains(&whole)
            || self.configured.contains(&name)
    }

    /// Whether this is one of them, as it stands in `Origin`.
    pub(crate) fn has_origin(&self, origin: &str) -> bool {
        let https = origin.strip_prefix("https://");
        let Some(host) = https.or_else(|| origin.strip_prefix("http://")) else { return false };
        let bare = host.parse::<Authority>().is_ok_and(|authority| authority.port().is_none());
        if https.is_some() && bare {
            self.has_host(&format!("{host}:443"))
        } else {
            self.has_host(host)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, configured: &[&str]) -> Hosts {
        let configured: Vec<String> = configured.iter().map(|&name| name.to_owned()).collect();
        Hosts::new(address.parse().expect("an address"), &configured)
    }

    #[test]
    fn only_the_names_of_this_machine_with_its_port_are_its_own() {
        let hosts = hosts("127.0.0.1:7117", &[]);
        for own in ["localhost:7117", "LOCALHOST:7117", "127.0.0.1:7117", "[::1]:7117"] {
            assert!(hosts.has_host(own), "{own}");
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
            assert!(!hosts.has_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn configured_names_hold_with_their_port_or_with_any() {
        let hosts = hosts("0.0.0.0:7117", &["Team.Example", "other.example:8443"]);
        for own in ["team.example", "team.example:9", "other.example:8443"] {
            assert!(hosts.has_host(own), "{own}");
        }
        for foreign in ["other.example", "other.example:1", "0.0.0.0:7117"] {
            assert!(!hosts.has_host(foreign), "{foreign}");
        }
        assert!(hosts.has_origin("https://team.example"));
        assert!(hosts.has_origin("https://other.example:8443"));
        for foreign in
            ["https://other.example", "null", "file://team.example", "http://evil.example"]
        {
            assert!(!hosts.has_origin(foreign), "{foreign}");
        }
    }
}
