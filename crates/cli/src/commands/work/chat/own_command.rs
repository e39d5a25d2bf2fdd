//! How the terminal program runs another command of this program on the same project.

use antiphon_project::environment::{Environment, RootPolicy, TrustPolicy};
use antiphon_project::state::STATE_VARIABLE;

use crate::failure::Failure;

/// The path of this program, or its name, which the shell finds.
pub(super) fn path() -> String {
    let path = std::env::current_exe().ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.unwrap_or_else(|| "antiphon".to_owned())
}

/// Options with which another command of this program works on the same project.
pub(super) fn options(environment: &Environment) -> Result<Vec<String>, Failure> {
    let mut options = Vec::new();
    if let Some(state) = environment.path(STATE_VARIABLE) {
        let state = environment.absolute(&state)?;
        let state = state.to_str().ok_or_else(|| {
            Failure::usage(
                "the path of the state folder is not UTF-8: choose another one with --state",
            )
        })?;
        options.extend(["--state".to_owned(), state.to_owned()]);
    }
    if environment.root_policy == RootPolicy::AllowUnsafe {
        options.push("--allow-unsafe-root".to_owned());
    }
    if environment.trust_policy == TrustPolicy::TrustAll {
        options.push("--trust".to_owned());
    }
    Ok(options)
}
