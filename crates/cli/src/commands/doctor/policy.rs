//! The policy of this machine in the report: what it limits, what it took from the settings, and attempts to get
//! around it.

use antiphon_project::policy::{POLICY_PATH, policy_trials};
use antiphon_project::project::Project;
use antiphon_project::settings::UserSettings;
use antiphon_view::display::escaped;
use serde::Serialize;

use super::Status;

/// The policy of this machine.
#[derive(Serialize)]
pub(super) struct PolicyReport {
    path: &'static str,
    pub(super) status: Status,
    detail: String,
    /// What it limits.
    limits: Vec<String>,
    /// What it took from the user's settings.
    narrowed: Vec<String>,
    /// Attempts to get around it.
    trials: Vec<Trial>,
}

#[derive(Serialize)]
struct Trial {
    what: String,
    holds: bool,
}

pub(super) fn policy(project: &Project, settings: &UserSettings) -> PolicyReport {
    let policy = &settings.policy;
    let trials = policy_trials(project, settings).into_iter();
    let trials: Vec<Trial> =
        trials.map(|trial| Trial { what: trial.what, holds: trial.holds }).collect();
    let names = |holds: bool| {
        let named = trials.iter().filter(|trial| trial.holds == holds);
        named.map(|trial| trial.what.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (status, detail) = match (policy.is_found(), names(false)) {
        (false, _) => (Status::NotConfigured, "none on this machine".to_owned()),
        (true, broken) if broken.is_empty() => {
            let refused = Some(names(true)).filter(|refused| !refused.is_empty());
            let refused =
                refused.map(|it| format!("; tried and refused: {it}")).unwrap_or_default();
            (Status::Ready, format!("in force{refused}"))
        }
        (true, broken) => (Status::Failed, format!("does not hold: {broken}")),
    };
    PolicyReport {
        path: POLICY_PATH,
        status,
        detail,
        limits: policy.limits(),
        narrowed: policy.narrowed().to_vec(),
        trials,
    }
}

impl PolicyReport {
    /// The lines of the readable report.
    pub(super) fn lines(&self) -> String {
        if self.status == Status::NotConfigured {
            return self.detail.clone();
        }
        let limits = self.limits.iter().map(|limit| format!("limits {limit}"));
        let narrowed = self.narrowed.iter().map(|note| format!("so {note}"));
        let lines =
            limits.chain(narrowed).map(|line| format!("\n               {}", escaped(&line)));
        format!("{} {}{}", self.path, self.detail, lines.collect::<String>())
    }
}
