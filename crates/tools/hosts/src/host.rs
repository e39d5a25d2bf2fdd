//! A host and a port, in the one form that is compared.

use std::fmt;
use std::net::IpAddr;

/// A host: a normalized name, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A name of ASCII labels, in lower case, without a final dot.
    Name(String),
    /// An address that was written as one.
    Address(IpAddr),
}

/// A host and the port to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// A text that does not name a host. Correct it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError(pub(crate) String);

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for HostError {}

impl Host {
    /// Parses a name or an address; IPv6 is in brackets. Every spelling of an IPv4 address that
    /// programs accept (`0x7f.1`, `2130706433`) becomes that address.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let refused = |why: &str| HostError(format!("`{}` is not a host: {why}", shown(text)));
        if text.len() > 255 {
            return Err(refused("it is too long"));
        }
        let without_dot = text.strip_suffix('.').unwrap_or(text);
        match url::Host::parse(without_dot) {
            Ok(url::Host::Ipv4(address)) => Ok(Self::Address(address.into())),
            Ok(url::Host::Ipv6(address)) => Ok(Self::Address(address.into())),
            Ok(url::Host::Domain(name)) => Self::name(name, refused),
            Err(_) => Err(refused("write a name such as `example.com`, or an address")),
        }
    }

    fn name(name: String, refused: impl Fn(&str) -> HostError) -> Result<Self, HostError> {
        // `url` accepts more characters than a name in the network has.
        let fits = |label: &str| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(plain)
        };
        if name.len() > 253 || !name.split('.').all(fits) {
            return Err(refused("its labels have letters, digits and `-`, at most 63 each"));
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }

    /// Whether the name means this machine by itself, without a resolver.
    pub fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }
}

/// The host of a page as a rule names it: with its port where that is not a usual one. Only pages are
/// named, without a user name or a password.
pub fn url_host(text: &str) -> Result<String, HostError> {
    let url = url::Url::parse(text)
        .map_err(|error| HostError(format!("`{}` is not a URL: {error}", shown(text))))?;
    let HostPort { host, port } = HostPort::of_url(&url)?;
    Ok(if matches!(port, 80 | 443) { host.to_string() } else { format!("{host}:{port}") })
}

impl HostPort {
    /// The host and the port of a page, of `http` or `https`.
    pub fn of_url(url: &url::Url) -> Result<Self, HostError> {
        let refused = |why: &str| Err(HostError(format!("`{}`: {why}", shown(url.as_str()))));
        if !matches!(url.scheme(), "http" | "https") {
            return refused("name an http or https URL");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("the URL must not contain a user name or a password");
        }
        let host = Host::parse(url.host_str().unwrap_or_default())?;
        Ok(Self { host, port: url.port_or_known_default().unwrap_or_default() })
    }

    /// Parses `HOST:PORT`, or `HOST` where `default_port` is known.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text)?;
        let missing = || HostError(format!("`{}` has no port", shown(text)));
        let port = port.or(default_port).ok_or_else(missing)?;
        Ok(Self { host: Host::parse(host)?, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits a port off. The colons of an IPv6 address are in brackets.
pub(crate) fn split_port(text: &str) -> Result<(&str, Option<u16>), HostError> {
    let after_address = text.rfind(']').map_or(0, |at| at + 1);
    let rest = text.get(after_address..).unwrap_or_default();
    let Some(colon) = rest.find(':') else { return Ok((text, None)) };
    let (host, port) = text.split_at(after_address + colon);
    let port = port.get(1..).unwrap_or_default();
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(number) if is_number && number > 0 => Ok((host, Some(number))),
        Ok(_) | Err(_) => Err(HostError(format!("`{}` has no valid port", shown(text)))),
    }
}

/// A text of unknown origin, cut and without control characters.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        Host::parse(text).map_or_else(|error| format!("error: {error}"), |host| host.to_string())
    }

    #[test]
    fn a_name_has_one_form() {
        for text in ["example.com", "EXAMPLE.com", "example.com.", "ｅxample.com"] {
            assert_eq!(parsed(text), "example.com", "{text}");
        }
        assert_eq!(parsed("bücher.example"), "xn--bcher-kva.example");
        assert_eq!(parsed("XN--BCHER-KVA.example"), "xn--bcher-kva.example");
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for text in ["127.0.0.1", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1."] {
            assert_eq!(parsed(text), "127.0.0.1", "{text}");
        }
        assert_eq!(parsed("[0:0::1]"), "[::1]");
        assert_eq!(parsed("[::ffff:127.0.0.1]"), "[::ffff:127.0.0.1]");
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = format!("{}.com", "a".repeat(64));
        let texts = [
            "",
            ".",
            "..",
            "a..b",
            "a b",
            "a/b",
            "a@b",
            "::1",
            "a\0b",
            "a%00b",
            "*.a.b",
            "a\nb",
            "256.1.1.1",
            "[::1",
            "example.com..",
            &long,
        ];
        for text in texts {
            assert!(Host::parse(text).is_err(), "{text:?} is {}", parsed(text));
        }
    }

    #[test]
    fn a_port_is_split_off_once() {
        let target = |text| HostPort::parse(text, None).map(|target| target.to_string());
        assert_eq!(target("Example.com:443").unwrap(), "example.com:443");
        assert_eq!(target("[::1]:80").unwrap(), "[::1]:80");
        for text in
            ["a.b", "a.b:", "a.b:0", "a.b:65536", "a.b:+80", "a.b:80:80", "::1:80", "a:b@c:80"]
        {
            assert!(target(text).is_err(), "{text}");
        }
        assert_eq!(HostPort::parse("a.b", Some(80)).unwrap().port, 80);
    }
}
