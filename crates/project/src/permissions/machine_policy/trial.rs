//! Tries to get around the policy, the way a user would: shows that it is in force.

use std::fs::OpenOptions;

use antiphon_core::port::{GateRequest, GateVerdict, Rule};
use antiphon_core::{ModelRef, RawJson};
use antiphon_mcp::{ServerConfig, ServerName};
use antiphon_permissions::PermissionMode;
use serde::Serialize;
use serde_json::json;

use super::{POLICY_PATH, Policy};
use crate::project::Project;
use crate::settings::UserSettings;
use crate::toolset::{self, PermissionOverrides};

/// One attempt to get around the policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyTrial {
    /// What was tried.
    pub what: String,
    /// Whether the policy held.
    pub holds: bool,
}

/// Tries each limit of the policy that these settings were narrowed to.
pub fn policy_trials(project: &Project, settings: &UserSettings) -> Vec<PolicyTrial> {
    let policy = &settings.policy;
    if !policy.is_found() {
        return Vec::new();
    }
    let mut trials: Vec<PolicyTrial> = change_file().into_iter().collect();
    trials.extend(overrides(policy, settings));
    trials.extend(calls(policy, project, settings));
    trials.extend(configuration(policy, settings));
    trials
}

fn trial(what: &str, holds: bool) -> PolicyTrial {
    PolicyTrial { what: what.to_owned(), holds }
}

/// Nothing is written: it is only opened. Root may change it.
fn change_file() -> Option<PolicyTrial> {
    let opened = || OpenOptions::new().append(true).open(POLICY_PATH);
    let is_root = rustix::process::geteuid().is_root();
    (!is_root).then(|| trial("changing the file", opened().is_err()))
}

fn overrides(policy: &Policy, settings: &UserSettings) -> Vec<PolicyTrial> {
    let refused =
        |overrides: PermissionOverrides| toolset::permissions(settings, &overrides).is_err();
    let mut trials = Vec::new();
    if policy.at_most(PermissionMode::Full) < PermissionMode::Full {
        let full = PermissionOverrides {
            mode: Some(PermissionMode::Full),
            ..PermissionOverrides::default()
        };
        trials.push(trial("--mode full", refused(full)));
    }
    if policy.no_whole_network.is_some() {
        let network = PermissionOverrides { network: true, ..PermissionOverrides::default() };
        trials.push(trial("--network", refused(network) && !settings.sandbox.network));
    }
    trials
}

/// Calls that a user has allowed with every rule there is.
fn calls(policy: &Policy, project: &Project, settings: &UserSettings) -> Vec<PolicyTrial> {
    let Ok(toolset) = toolset::Toolset::gate_only(project, settings) else {
        return vec![trial("making a gate", false)];
    };
    let granted: Vec<Rule> =
        ["*", "bash", "unsandboxed", "network", "network(policy-trial.invalid)"]
            .map(|rule| Rule(rule.to_owned()))
            .into();
    let denied = |arguments: serde_json::Value| {
        RawJson::of(&arguments).is_ok_and(|arguments| {
            let call = GateRequest { tool: "bash", arguments: &arguments, granted: &granted };
            matches!(toolset.gate.judge(&call), GateVerdict::Deny { .. })
        })
    };
    let mut trials = Vec::new();
    if !policy.allows_way_out() {
        let call = json!({ "command": "true", "without_sandbox": true });
        trials.push(trial("leaving the sandbox", denied(call)));
    }
    if policy.rules.hosts.is_some() {
        let call = json!({ "command": "true", "hosts": ["policy-trial.invalid"] });
        trials.push(trial("a host that is not listed", denied(call)));
    }
    // The policy says itself what its rules about commands are about.
    for rule in policy.rules.deny.iter().filter(|entry| entry.rule.0.starts_with("bash(")) {
        let tried = |example: &String| {
            trial(&format!("`{example}`"), denied(json!({ "command": example })))
        };
        trials.extend(rule.examples.iter().map(tried));
    }
    trials
}

/// What settings could add.
fn configuration(policy: &Policy, settings: &UserSettings) -> Vec<PolicyTrial> {
    let mut trials = Vec::new();
    if policy.models.is_some() {
        let refused = ModelRef::parse("policy-trial/none")
            .is_ok_and(|model| policy.check_model(&model, settings).is_err());
        trials.push(trial("a model that is not listed", refused));
    }
    if policy.mcp.is_some() {
        let config = toml::from_str::<ServerConfig>("command = \"/policy-trial\"").ok();
        let name: Option<ServerName> = "policy-trial".parse().ok();
        let refused = config.zip(name);
        let refused =
            refused.is_some_and(|(config, name)| policy.check_server(&name, &config).is_err());
        trials.push(trial("an MCP server that is not listed", refused));
    }
    if policy.no_terminals.is_some() {
        trials.push(trial("a program in a terminal", settings.terminals.is_empty()));
    }
    if let Some(ceiling) = policy.spend_ceiling() {
        let within = |own: Option<_>, most: Option<_>| {
            most.is_none() || own.is_some_and(|own| Some(own) <= most)
        };
        let (own, most) = (settings.budget, ceiling.limits);
        let holds = within(own.daily_nano_usd_max, most.daily_nano_usd_max)
            && within(own.monthly_nano_usd_max, most.monthly_nano_usd_max);
        trials.push(trial("a larger budget", holds));
    }
    trials
}
