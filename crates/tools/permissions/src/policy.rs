//! The policy of a machine: rules that only restrict, above every layer of a gate. What a user granted does
//! not count here.

use antiphon_core::port::{GateVerdict, Rule};
use antiphon_hosts::{HostPolicy, HostRule, host_rules};

use crate::call::{Call, Subject};
use crate::config::{ConfigError, PolicyRules};
use crate::finding::{Decision, Explanation, Finding};
use crate::gate::GateContext;
use crate::layer::Layer;

/// The policy of a gate.
#[derive(Debug)]
pub(crate) struct PolicyLayer {
    layer: Layer,
    hosts: Option<OnlyHosts>,
}

#[derive(Debug)]
struct OnlyHosts {
    rules: Vec<HostRule>,
    origin: String,
}

impl PolicyLayer {
    pub(crate) fn new(rules: &PolicyRules, root: &str) -> Result<Self, ConfigError> {
        let hosts = rules.hosts.as_ref().map(|limit| {
            let read = |text: &String| {
                host_rules(text).map_err(|error| ConfigError::Rule {
                    rule: Rule(text.clone()),
                    reason: error.to_string(),
                })
            };
            let hosts: Result<Vec<_>, _> = limit.hosts.iter().map(read).collect();
            Ok(OnlyHosts { rules: hosts?.concat(), origin: limit.origin.clone() })
        });
        Ok(Self {
            layer: Layer::of_policy(&rules.ask, &rules.deny, root)?,
            hosts: hosts.transpose()?,
        })
    }

    /// What the policy says about a call; `None` when it does not restrict the call.
    pub(crate) fn explain(&self, call: &Call<'_>, context: &GateContext) -> Option<Explanation> {
        let mut findings = self.layer.judge(call, context, &[]);
        // What no rule decided is for the layers of the user to decide.
        findings.retain(|finding| finding.rule.is_some());
        findings.extend(self.unlisted_hosts(call));
        if findings.is_empty() {
            return None;
        }
        let explanation = Explanation::of_policy(findings);
        (explanation.decision() > Decision::Allow).then_some(explanation)
    }

    /// The same for a call of a tool that is not ours, by the rules alone.
    pub(crate) fn judge_by_rules(&self, call: &Call<'_>) -> Option<GateVerdict> {
        self.layer.restricting_verdict(call)
    }

    pub(crate) fn host_policy(&self) -> HostPolicy {
        let of_rules = self.layer.hosts(std::iter::empty());
        let only = self.hosts.as_ref().map(|only| only.rules.clone());
        HostPolicy { only, ask: of_rules.ask, deny: of_rules.deny }
    }

    fn unlisted_hosts(&self, call: &Call<'_>) -> Vec<Finding> {
        let hosts = match &call.subject {
            Subject::Script { hosts, .. } | Subject::Page { hosts } => hosts,
            Subject::File { .. } | Subject::Other | Subject::Malformed(_) => return Vec::new(),
        };
        let Some(only) = &self.hosts else { return Vec::new() };
        let unlisted = |host: &&HostRule| !only.rules.iter().any(|rule| rule.covers(host));
        let finding = |host: &HostRule| Finding {
            what: format!("the host `{host}`"),
            decision: Decision::Deny,
            because: format!("it is not among the hosts of {}", only.origin),
            rule: None,
            proposal: None,
        };
        hosts.iter().filter(unlisted).map(finding).collect()
    }
}

impl PolicyRules {
    /// Checks that every rule and every host can be read.
    pub fn check(&self) -> Result<(), ConfigError> {
        PolicyLayer::new(self, "/project").map(drop)
    }
}
