//! Rules about hosts, and hosts that a command asks for.

use std::fmt;

use crate::address::AddressClass;
use crate::host::{Host, HostError, HostPort, shown, split_port};
use crate::preset::preset;

/// Most hosts that one call can ask for.
pub const REQUESTED_HOSTS_MAX: usize = 16;

/// Ports that a rule without a port allows.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// A rule about hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    pattern: Pattern,
    /// `None`: the default ports where the rule allows, every port where it restricts.
    port: Option<u16>,
    /// The class of addresses it allows beside public ones.
    class: Option<AddressClass>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// Every name. Addresses must be named literally.
    Any,
    /// This host.
    Exact(Host),
    /// Every name that ends with a dot and this name.
    Below(String),
}

/// Parses the pattern of a rule: hosts and presets, separated by spaces.
pub fn host_rules(text: &str) -> Result<Vec<HostRule>, HostError> {
    let mut rules = Vec::new();
    for word in text.split_whitespace() {
        match preset(word) {
            Some(hosts) => {
                for host in hosts {
                    rules.push(HostRule::parse(host)?);
                }
            }
            None => rules.push(HostRule::parse(word)?),
        }
    }
    if rules.is_empty() {
        return Err(HostError("it names no host".to_owned()));
    }
    Ok(rules)
}

/// Parses the hosts that a call asks for. Each is one host: no wildcard and no preset.
pub fn requested_hosts<'a>(
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<HostRule>, HostError> {
    let mut rules = Vec::new();
    for text in texts {
        let rule = HostRule::parse(text.trim())?;
        if !rule.is_exact() {
            return Err(HostError(format!("`{}`: name each host, without `*`", shown(text))));
        }
        if let Some(class) = rule.never() {
            return Err(HostError(format!("`{rule}` is {class}, which no command may reach")));
        }
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    if rules.len() > REQUESTED_HOSTS_MAX {
        return Err(HostError(format!("name {REQUESTED_HOSTS_MAX} hosts at most")));
    }
    Ok(rules)
}

impl HostRule {
    /// The rule about every host name.
    pub fn any() -> Self {
        Self { pattern: Pattern::Any, port: None, class: None }
    }

    fn parse(text: &str) -> Result<Self, HostError> {
        let (host, class) = match text.split_once('=') {
            None => (text, None),
            Some((host, "private")) => (host, Some(AddressClass::Private)),
            Some((host, "loopback")) => (host, Some(AddressClass::Loopback)),
            Some(_) => {
                let text = shown(text);
                return Err(HostError(format!(
                    "`{text}`: after `=` write `private` or `loopback`"
                )));
            }
        };
        let (host, port) = split_port(host)?;
        let pattern = match host.strip_prefix("*.") {
            Some(suffix) => match Host::parse(suffix)? {
                Host::Name(name) if name.contains('.') => Pattern::Below(name),
                Host::Name(_) | Host::Address(_) => {
                    return Err(HostError(format!(
                        "`{}` is too broad: name at least two labels after `*.`",
                        shown(text)
                    )));
                }
            },
            None => Pattern::Exact(Host::parse(host)?),
        };
        let rule = Self { class: class.or(literal_class(&pattern)), pattern, port };
        Ok(rule)
    }

    /// Whether the rule names one host.
    pub fn is_exact(&self) -> bool {
        matches!(self.pattern, Pattern::Exact(_))
    }

    /// The host, if the rule names one.
    pub fn host(&self) -> Option<&Host> {
        match &self.pattern {
            Pattern::Exact(host) => Some(host),
            Pattern::Any | Pattern::Below(_) => None,
        }
    }

    /// The class of an address that this rule names and that no rule can allow.
    fn never(&self) -> Option<AddressClass> {
        match self.host() {
            Some(Host::Address(address)) => {
                Some(AddressClass::of(*address)).filter(|class| !class.may_be_allowed())
            }
            Some(Host::Name(_)) | None => None,
        }
    }

    /// Whether the rule, as one that allows, covers `target`.
    pub fn allows(&self, target: &HostPort) -> bool {
        let port = match self.port {
            Some(port) => port == target.port,
            None => DEFAULT_PORTS.contains(&target.port),
        };
        port && self.matches(&target.host)
    }

    /// Whether the rule, as one that restricts, is about `target`.
    pub fn restricts(&self, target: &HostPort) -> bool {
        self.port.is_none_or(|port| port == target.port) && self.matches_name_or_all(&target.host)
    }

    /// Whether addresses of this class are allowed at the hosts of this rule.
    pub fn allows_class(&self, class: AddressClass) -> bool {
        class == AddressClass::Public || (class.may_be_allowed() && self.class == Some(class))
    }

    /// Whether the rule, as one that allows, covers everything that `requested` would allow.
    pub fn covers(&self, requested: &Self) -> bool {
        let Some(host) = requested.host() else { return false };
        let ports = match (self.port, requested.port) {
            (None, None) => true,
            (None, Some(port)) => DEFAULT_PORTS.contains(&port),
            (Some(_), None) => false,
            (Some(ours), Some(port)) => ours == port,
        };
        let class = requested.class.is_none_or(|class| self.allows_class(class));
        ports && class && self.matches(host)
    }

    /// Whether the rule, as one that restricts, is about a part of what `requested` would allow.
    pub fn touches(&self, requested: &Self) -> bool {
        let Some(host) = requested.host() else { return true };
        let ports = match (self.port, requested.port) {
            (Some(ours), Some(port)) => ours == port,
            (None, _) | (_, None) => true,
        };
        ports && self.matches_name_or_all(host)
    }

    fn matches(&self, host: &Host) -> bool {
        match (&self.pattern, host) {
            (Pattern::Any, Host::Name(_)) => !host.is_localhost(),
            (Pattern::Any | Pattern::Below(_), Host::Address(_)) => false,
            (Pattern::Exact(exact), host) => exact == host,
            (Pattern::Below(suffix), Host::Name(name)) => {
                let above = name.strip_suffix(suffix.as_str());
                above.is_some_and(|labels| labels.ends_with('.') && labels.len() > 1)
            }
        }
    }

    fn matches_name_or_all(&self, host: &Host) -> bool {
        self.pattern == Pattern::Any || self.matches(host)
    }
}

/// A name or an address that is literally of a class allows that class.
fn literal_class(pattern: &Pattern) -> Option<AddressClass> {
    let Pattern::Exact(host) = pattern else { return None };
    match host {
        Host::Name(_) => host.is_localhost().then_some(AddressClass::Loopback),
        Host::Address(address) => {
            Some(AddressClass::of(*address)).filter(|class| class.may_be_allowed())
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::Any => f.write_str("*")?,
            Pattern::Exact(host) => host.fmt(f)?,
            Pattern::Below(suffix) => write!(f, "*.{suffix}")?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match self.class.filter(|_| self.class != literal_class(&self.pattern)) {
            Some(AddressClass::Private) => f.write_str("=private"),
            Some(AddressClass::Loopback) => f.write_str("=loopback"),
            Some(
                AddressClass::Public
                | AddressClass::LinkLocal
                | AddressClass::Metadata
                | AddressClass::Multicast
                | AddressClass::Translated
                | AddressClass::Reserved,
            )
            | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::AddressClass::{Loopback, Private, Public};
    use crate::preset::PRESETS;

    fn rule(text: &str) -> HostRule {
        HostRule::parse(text).unwrap()
    }

    fn allows(text: &str, target: &str) -> bool {
        rule(text).allows(&HostPort::parse(target, None).unwrap())
    }

    #[test]
    fn labels_are_compared_whole() {
        for (text, target) in [
            ("example.com", "example.com:443"),
            ("example.com", "EXAMPLE.COM.:80"),
            ("*.example.com", "a.example.com:443"),
            ("*.example.com", "a.b.example.com:443"),
            ("example.com:8443", "example.com:8443"),
            ("bücher.example", "xn--bcher-kva.example:443"),
            ("127.0.0.1:8081", "0x7f.1:8081"),
        ] {
            assert!(allows(text, target), "{text} {target}");
        }
        for (text, target) in [
            ("example.com", "notexample.com:443"),
            ("example.com", "example.com.evil.org:443"),
            ("example.com", "a.example.com:443"),
            ("*.example.com", "example.com:443"),
            ("*.example.com", "notexample.com:443"),
            ("*.example.com", "a.example.com.evil.org:443"),
            ("example.com", "example.com:22"),
            ("example.com:8443", "example.com:443"),
            ("localhost:8081", "127.0.0.1:8081"),
        ] {
            assert!(!allows(text, target), "{text} {target}");
        }
        let any = |target| HostRule::any().allows(&HostPort::parse(target, None).unwrap());
        assert!(any("example.com:443"));
        assert!(!any("example.com:22") && !any("1.1.1.1:443") && !any("localhost:80"));
    }

    #[test]
    fn a_restriction_without_a_port_is_about_every_port() {
        let target = |text| HostPort::parse(text, None).unwrap();
        assert!(rule("evil.org").restricts(&target("evil.org:22")));
        assert!(!rule("evil.org:22").restricts(&target("evil.org:443")));
        assert!(HostRule::any().restricts(&target("10.0.0.1:22")));
        assert!(rule("evil.org:22").touches(&rule("evil.org")));
        assert!(!rule("evil.org:22").touches(&rule("evil.org:443")));
    }

    #[test]
    fn a_class_is_allowed_only_where_it_is_named() {
        let allowed = |text: &str| -> Vec<AddressClass> {
            [
                Public,
                Loopback,
                Private,
                AddressClass::LinkLocal,
                AddressClass::Metadata,
                AddressClass::Multicast,
                AddressClass::Translated,
                AddressClass::Reserved,
            ]
            .into_iter()
            .filter(|class| rule(text).allows_class(*class))
            .collect()
        };
        assert_eq!(allowed("example.com"), [Public]);
        assert_eq!(allowed("*.example.com"), [Public]);
        assert_eq!(allowed("registry.corp=private"), [Public, Private]);
        assert_eq!(allowed("registry.test=loopback"), [Public, Loopback]);
        assert_eq!(allowed("localhost:8081"), [Public, Loopback]);
        assert_eq!(allowed("10.0.0.1"), [Public, Private]);
        assert_eq!(allowed("[::1]"), [Public, Loopback]);
        assert_eq!(allowed("169.254.169.254"), [Public]);
    }

    #[test]
    fn coverage_needs_host_port_and_class() {
        let covers = |ours: &str, requested: &str| rule(ours).covers(&rule(requested));
        assert!(covers("*.example.com", "a.example.com"));
        assert!(covers("example.com", "example.com:443"));
        assert!(covers("a.corp=private", "a.corp"));
        assert!(!covers("a.corp", "a.corp=private"));
        assert!(!covers("example.com", "example.com:8080"));
        assert!(!covers("example.com:443", "example.com"));
        assert!(!covers("example.com", "*.example.com"));
    }

    #[test]
    fn requests_are_exact_and_never_for_the_metadata_service() {
        let refused = |text: &str| requested_hosts([text]).unwrap_err().to_string();
        assert!(refused("*.example.com").contains("without `*`"));
        assert!(refused("169.254.169.254").contains("link-local"));
        assert!(refused("[::ffff:10.0.0.1]").contains("stands for another"));
        assert!(refused("a b").contains("not a host"));
        assert_eq!(requested_hosts(["A.com", "a.com."]).unwrap(), [rule("a.com")]);
        let many: Vec<String> = (0..17).map(|n| format!("h{n}.example")).collect();
        assert!(requested_hosts(many.iter().map(String::as_str)).is_err());
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in ["example.com", "*.example.com:8443", "a.corp=private", "localhost:1", "[::1]"]
        {
            assert_eq!(rule(text).to_string(), text);
        }
        for text in ["*.com", "*", "a=public", "a=", "*.127.0.0.1", "a:b", "https://a.com"] {
            assert!(HostRule::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn presets_name_hosts_and_all_of_them_have_one_name() {
        let all = host_rules("registries").unwrap();
        for (name, hosts) in PRESETS {
            let rules = host_rules(name).unwrap();
            assert_eq!(rules.len(), hosts.len());
            assert!(rules.iter().all(|rule| rule.is_exact() && all.contains(rule)), "{name}");
        }
        assert_eq!(host_rules("pypi example.com").unwrap().len(), 3);
        assert!(host_rules("  ").is_err());
    }
}
