//! Which hosts the commands of one call may reach.

use std::net::IpAddr;

use crate::address::AddressClass;
use crate::host::{Host, HostPort};
use crate::rule::HostRule;

/// The hosts that the commands of one call may reach. The default is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAccess {
    /// Each only restricts the others: a host must be allowed in all of them.
    layers: Vec<HostLayer>,
    /// Exact hosts that a person allowed. They override `ask`, and never `deny`.
    approved: Vec<HostRule>,
    /// Exact hosts that this call asked for and got.
    requested: Vec<HostRule>,
    policy: HostPolicy,
}

/// Limits of the machine. No rule of a user and no approval for more than one call overrides them. The
/// default limits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPolicy {
    /// The only hosts that may be reached; absent: any.
    pub only: Option<Vec<HostRule>>,
    /// Hosts that a person has to allow for each call.
    pub ask: Vec<HostRule>,
    /// Hosts that may never be reached.
    pub deny: Vec<HostRule>,
}

/// Rules of one origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLayer {
    /// Hosts that may be reached.
    pub allow: Vec<HostRule>,
    /// Hosts that may be reached only with an approval.
    pub ask: Vec<HostRule>,
    /// Hosts that may never be reached.
    pub deny: Vec<HostRule>,
}

/// Whether a host may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Yes, at addresses that [`HostAccess::allows_address`] allows.
    Allowed,
    /// No rule allows it. A person can.
    NotAllowed,
    /// A rule denies it. No person can allow it.
    Denied,
}

impl HostAccess {
    /// Access by rules. Without a layer, nothing is allowed.
    pub fn new(layers: Vec<HostLayer>, approved: Vec<HostRule>) -> Self {
        let approved = approved.into_iter().filter(HostRule::is_exact).collect();
        Self { layers, approved, requested: Vec::new(), policy: HostPolicy::default() }
    }

    /// The same access within the limits of the machine.
    #[must_use]
    pub fn within(self, policy: HostPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The same access, and further hosts that a person or a rule allowed for this call.
    #[must_use]
    pub fn with_approved(mut self, approved: impl IntoIterator<Item = HostRule>) -> Self {
        let approved: Vec<HostRule> = approved.into_iter().filter(HostRule::is_exact).collect();
        self.approved.extend(approved.iter().cloned());
        self.requested.extend(approved);
        self
    }

    /// Whether no host can ever be allowed: there are no rules, or one denies every host.
    pub fn is_closed(&self) -> bool {
        let any = HostRule::any();
        self.layers.is_empty()
            || self.layers.iter().any(|layer| layer.deny.contains(&any))
            || self.policy.deny.contains(&any)
            || self.policy.only.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether `target` may be reached.
    pub fn of(&self, target: &HostPort) -> Access {
        if self.layers.iter().any(|layer| layer.deny.iter().any(|rule| rule.restricts(target))) {
            return Access::Denied;
        }
        if !self.policy.permits(target) {
            return Access::Denied;
        }
        let requested = || self.requested.iter().any(|rule| rule.allows(target));
        if self.policy.ask.iter().any(|rule| rule.restricts(target)) && !requested() {
            return Access::NotAllowed;
        }
        let approved = self.approved.iter().any(|rule| rule.allows(target));
        let open = |layer: &HostLayer| {
            let asked = layer.ask.iter().any(|rule| rule.restricts(target));
            approved || (!asked && layer.allow.iter().any(|rule| rule.allows(target)))
        };
        if !self.layers.is_empty() && self.layers.iter().all(open) {
            Access::Allowed
        } else {
            Access::NotAllowed
        }
    }

    /// Whether `target`, which may be reached, may be reached at this address.
    pub fn allows_address(&self, target: &HostPort, address: IpAddr) -> bool {
        let literal = HostPort { host: Host::Address(address), port: target.port };
        let denies = |layer: &HostLayer| layer.deny.iter().any(|rule| rule.restricts(&literal));
        if self.layers.iter().any(denies) {
            return false;
        }
        let class = AddressClass::of(address);
        let fits = |rule: &HostRule| rule.allows(target) && rule.allows_class(class);
        if self.policy.deny.iter().any(|rule| rule.restricts(&literal))
            || self.policy.only.as_ref().is_some_and(|only| !only.iter().any(fits))
        {
            return false;
        }
        let approved = self.approved.iter().any(fits);
        let open = |layer: &HostLayer| approved || layer.allow.iter().any(fits);
        class.may_be_allowed() && !self.layers.is_empty() && self.layers.iter().all(open)
    }

    /// Hosts that mean this machine, which are reached through the proxy because a rule names them.
    pub fn machine_hosts(&self) -> Vec<Host> {
        let rules = self.layers.iter().flat_map(|layer| &layer.allow).chain(&self.approved);
        let own = rules.filter(|rule| rule.allows_class(AddressClass::Loopback));
        let mut hosts: Vec<Host> = own.filter_map(|rule| rule.host().cloned()).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

impl HostPolicy {
    /// Whether these limits leave `target` to the rules of the user.
    fn permits(&self, target: &HostPort) -> bool {
        !self.deny.iter().any(|rule| rule.restricts(target))
            && self.only.as_ref().is_none_or(|only| only.iter().any(|rule| rule.allows(target)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::host_rules;

    fn rules(text: &str) -> Vec<HostRule> {
        if text.is_empty() { Vec::new() } else { host_rules(text).unwrap() }
    }

    fn layer(allow: &str, ask: &str, deny: &str) -> HostLayer {
        HostLayer { allow: rules(allow), ask: rules(ask), deny: rules(deny) }
    }

    fn of(access: &HostAccess, target: &str) -> Access {
        access.of(&HostPort::parse(target, Some(443)).unwrap())
    }

    #[test]
    fn the_strictest_rule_decides() {
        let one = layer("*.example.com other.org", "ask.example.com", "bad.example.com");
        let access = HostAccess::new(vec![one], Vec::new());
        assert_eq!(of(&access, "a.example.com"), Access::Allowed);
        assert_eq!(of(&access, "ask.example.com"), Access::NotAllowed);
        assert_eq!(of(&access, "bad.example.com"), Access::Denied);
        assert_eq!(of(&access, "unknown.org"), Access::NotAllowed);
        let approved = access.with_approved(rules("ask.example.com bad.example.com unknown.org"));
        assert_eq!(of(&approved, "ask.example.com"), Access::Allowed);
        assert_eq!(of(&approved, "bad.example.com"), Access::Denied);
        assert_eq!(of(&approved, "unknown.org"), Access::Allowed);
    }

    #[test]
    fn a_further_layer_only_restricts() {
        let outer = layer("a.org b.org", "", "");
        let inner = layer("b.org c.org", "", "");
        let access = HostAccess::new(vec![outer, inner], Vec::new());
        assert_eq!(of(&access, "a.org"), Access::NotAllowed);
        assert_eq!(of(&access, "b.org"), Access::Allowed);
        assert_eq!(of(&access, "c.org"), Access::NotAllowed);
        assert_eq!(
            of(&HostAccess::default().with_approved(rules("a.org")), "a.org"),
            Access::NotAllowed
        );
    }

    #[test]
    fn an_address_needs_a_rule_for_its_class() {
        let access = HostAccess::new(
            vec![layer("a.org b.corp=private localhost:8081", "", "10.0.0.9")],
            Vec::new(),
        );
        let allows = |target: &str, address: &str| {
            access.allows_address(
                &HostPort::parse(target, Some(443)).unwrap(),
                address.parse().unwrap(),
            )
        };
        assert!(allows("a.org", "1.1.1.1"));
        assert!(!allows("a.org", "10.0.0.1") && !allows("a.org", "127.0.0.1"));
        assert!(allows("b.corp", "10.0.0.1") && !allows("b.corp", "127.0.0.1"));
        assert!(!allows("b.corp", "10.0.0.9"), "a denied address is denied under any name");
        assert!(allows("localhost:8081", "127.0.0.1") && !allows("localhost:80", "127.0.0.1"));
        for never in ["169.254.169.254", "::ffff:1.1.1.1", "fd00:ec2::254", "224.0.0.1"] {
            assert!(!allows("b.corp", never), "{never}");
        }
    }

    #[test]
    fn denying_every_host_closes_the_network() {
        let denied = HostLayer { deny: vec![HostRule::any()], ..layer("a.org", "", "") };
        assert!(HostAccess::new(vec![denied], Vec::new()).is_closed());
        assert!(!HostAccess::new(vec![layer("", "", "")], Vec::new()).is_closed());
        assert!(HostAccess::default().is_closed());
    }

    #[test]
    fn hosts_of_this_machine_are_listed() {
        let access =
            HostAccess::new(vec![layer("localhost:8081 a.org", "", "")], rules("[::1]:90"));
        let hosts: Vec<String> = access.machine_hosts().iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["localhost", "[::1]"]);
    }

    #[test]
    fn no_rule_and_no_approval_reaches_beyond_the_policy() {
        let access = |only: Option<&str>, ask: &str, deny: &str| {
            let everything = HostLayer {
                allow: vec![HostRule::any()],
                ..layer("10.0.0.1 b.corp=private", "", "")
            };
            let policy = HostPolicy { only: only.map(rules), ask: rules(ask), deny: rules(deny) };
            let approved = rules("a.org b.corp=private evil.org asked.org");
            HostAccess::new(vec![everything], approved).within(policy)
        };
        let limited = access(Some("a.org b.corp asked.org"), "asked.org", "bad.a.org 1.1.1.1");
        assert_eq!(of(&limited, "a.org"), Access::Allowed);
        assert_eq!(of(&limited, "a.org:22"), Access::Denied);
        assert_eq!(of(&limited, "evil.org"), Access::Denied);
        assert_eq!(of(&limited, "10.0.0.1"), Access::Denied);
        assert_eq!(
            of(&limited.clone().with_approved(rules("evil.org")), "evil.org"),
            Access::Denied
        );
        assert_eq!(of(&limited, "asked.org"), Access::NotAllowed, "a grant is not enough");
        let asked = limited.clone().with_approved(rules("asked.org"));
        assert_eq!(of(&asked, "asked.org"), Access::Allowed);
        let target = |text| HostPort::parse(text, Some(443)).unwrap();
        assert!(!limited.allows_address(&target("b.corp"), "10.0.0.1".parse().unwrap()));
        assert!(!limited.allows_address(&target("a.org"), "1.1.1.1".parse().unwrap()));
        assert!(limited.allows_address(&target("a.org"), "8.8.8.8".parse().unwrap()));
        assert!(access(Some(""), "", "").is_closed() && !limited.is_closed());
        assert_eq!(of(&access(None, "", "evil.org"), "evil.org"), Access::Denied);
    }
}
