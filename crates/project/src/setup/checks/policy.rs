//! The policy of this machine: what it limits, what it took from the settings, and attempts to get around it.

use serde::Serialize;

use super::check::{Check, CheckStatus};
use crate::machine_policy::{POLICY_PATH, PolicyTrial, policy_trials};
use crate::project::Project;
use crate::settings::UserSettings;

/// The check of the policy of this machine.
#[derive(Debug, Serialize)]
pub struct PolicyCheck {
    /// The result. Its path is the one of the policy file.
    #[serde(flatten)]
    pub check: Check,
    /// What it limits.
    pub limits: Vec<String>,
    /// What it took from the user's settings.
    pub narrowed: Vec<String>,
    /// Attempts to get around it.
    pub trials: Vec<PolicyTrial>,
}

pub(super) fn check(project: &Project, settings: &UserSettings) -> PolicyCheck {
    let policy = &settings.policy;
    let trials = policy_trials(project, settings);
    let names = |holds: bool| {
        let named = trials.iter().filter(|trial| trial.holds == holds);
        named.map(|trial| trial.what.as_str()).collect::<Vec<_>>().join(", ")
    };
    let check = match (policy.is_found(), names(false)) {
        (false, _) => Check::not_configured("none on this machine"),
        (true, broken) if broken.is_empty() => {
            let refused = Some(names(true)).filter(|refused| !refused.is_empty());
            let refused = refused.map(|it| format!("; tried and refused: {it}"));
            Check::ready(format!("in force{}", refused.unwrap_or_default()))
        }
        (true, broken) => Check::failed(format!("does not hold: {broken}")),
    };
    PolicyCheck {
        check: Check { path: Some(POLICY_PATH.to_owned()), ..check },
        limits: policy.limits(),
        narrowed: policy.narrowed().to_vec(),
        trials,
    }
}

impl PolicyCheck {
    /// Whether this machine has a policy.
    pub fn is_found(&self) -> bool {
        self.check.status != CheckStatus::NotConfigured
    }
}
