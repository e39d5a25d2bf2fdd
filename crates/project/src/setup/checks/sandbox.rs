//! The sandbox of commands.

use std::path::PathBuf;

use super::check::Check;
use crate::environment::Environment;
use crate::project::Project;
use crate::toolset;

/// Tries the sandbox.
pub(super) fn check(project: &Project, environment: &Environment) -> Check {
    // Not below /tmp: the sandbox mounts its own.
    let home = environment.path("HOME");
    let candidates = [Some(project.state().to_owned()), home, Some(project.root().to_owned())];
    let fits = |path: &PathBuf| path.is_dir() && !path.starts_with("/tmp");
    let Some(scratch) = candidates.into_iter().flatten().find(fits) else {
        return Check::not_configured("not tried: there is no folder outside of /tmp to try it in");
    };
    match antiphon_sandbox::probe(&toolset::worker(), &scratch) {
        Ok(report) if report.holds() => {
            let tried: Vec<String> = report.trials.into_iter().map(|trial| trial.what).collect();
            Check::ready(format!("holds; tried: {}", tried.join(", ")))
        }
        Ok(report) => {
            let broken = report.trials.into_iter().filter(|trial| !trial.passed);
            let broken: Vec<String> =
                broken.map(|trial| format!("{} ({})", trial.what, trial.detail)).collect();
            Check::failed(format!("does not hold: {}", broken.join("; ")))
        }
        Err(error) => Check::failed(format!("{error}; `bash` is refused here")),
    }
}
