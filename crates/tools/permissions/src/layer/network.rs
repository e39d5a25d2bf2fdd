//! Judges the hosts that a call of `bash` asks for or a page is on, and lists the hosts that commands may reach.

use antiphon_core::port::Rule;
use antiphon_hosts::{AddressClass, HostLayer, HostRule};

use super::{Evaluation, Layer, allowed_by, asked_by, by_default, denied_by, granted_by};
use crate::config::PermissionMode;
use crate::finding::{Decision, Finding};
use crate::rule::ParsedRule;
use crate::rules::LoadedRule;

impl Layer {
    /// The rules of this layer about hosts. `grants` are rules that a user approved.
    pub(crate) fn hosts<'a>(&self, grants: impl Iterator<Item = &'a ParsedRule>) -> HostLayer {
        let of = |rules: &[LoadedRule], hosts: fn(&ParsedRule) -> Vec<HostRule>| {
            rules.iter().flat_map(|loaded| hosts(&loaded.rule)).collect()
        };
        let mut allow: Vec<HostRule> = of(&self.allow, ParsedRule::allowed_hosts);
        if self.mode > PermissionMode::ReadOnly {
            allow.extend(grants.flat_map(ParsedRule::allowed_hosts));
        }
        HostLayer {
            allow,
            ask: of(&self.ask, ParsedRule::restricted_hosts),
            deny: of(&self.deny, ParsedRule::restricted_hosts),
        }
    }
}

impl Evaluation<'_> {
    /// One finding for each host. Those that need an approval propose one rule for all of them.
    pub(super) fn requested_hosts(&self, hosts: &[HostRule]) -> Vec<Finding> {
        let findings: Vec<Finding> = hosts.iter().map(|host| self.requested_host(host)).collect();
        let asked = hosts.iter().zip(&findings);
        let asked = asked.filter(|(_, finding)| finding.decision == Decision::Ask);
        let asked: Vec<String> = asked.map(|(host, _)| host.to_string()).collect();
        let proposal = Rule(format!("network({})", asked.join(" ")));
        let propose = |mut finding: Finding| {
            if finding.decision == Decision::Ask {
                finding.proposal = Some(proposal.clone());
            }
            finding
        };
        findings.into_iter().map(propose).collect()
    }

    fn requested_host(&self, host: &HostRule) -> Finding {
        let what = format!("the host `{host}`");
        let touches = |loaded: &&LoadedRule| {
            loaded.rule.restricted_hosts().iter().any(|rule| rule.touches(host))
        };
        if let Some(rule) = self.layer.deny.iter().find(touches) {
            return denied_by(what, rule);
        }
        if self.layer.mode == PermissionMode::ReadOnly {
            return by_default(what, Decision::Deny, "mode read-only reaches no host", None);
        }
        let covers = |rule: &ParsedRule| rule.allowed_hosts().iter().any(|rule| rule.covers(host));
        let exactly = |rule: &ParsedRule| {
            let hosts = rule.allowed_hosts();
            hosts.iter().any(|rule| rule.is_exact() && rule.covers(host))
        };
        if let Some(rule) = self.layer.ask.iter().find(touches) {
            return match self.grants.iter().find(|grant| exactly(grant)) {
                Some(grant) => granted_by(what, grant),
                None => asked_by(what, rule, None),
            };
        }
        if let Some(rule) = self.layer.allow.iter().find(|loaded| covers(&loaded.rule)) {
            return allowed_by(what, rule);
        }
        if let Some(grant) = self.grants.iter().find(|grant| covers(grant)) {
            return granted_by(what, grant);
        }
        match self.layer.mode {
            PermissionMode::Full => {
                by_default(what, Decision::Allow, "mode full allows every host", None)
            }
            PermissionMode::ReadOnly | PermissionMode::Workspace => {
                by_default(what, Decision::Ask, why_asked(host), None)
            }
        }
    }
}

/// What a person should know about a host that no rule allows.
fn why_asked(host: &HostRule) -> &'static str {
    if host.allows_class(AddressClass::Loopback) {
        "it reaches a service of this machine, outside of the sandbox"
    } else if host.allows_class(AddressClass::Private) {
        "it reaches a private network"
    } else {
        "agents reach only hosts that you allow"
    }
}
