//! Options that say where a project's state is, and which folder may be its root.

use std::path::PathBuf;

use antiphon_project::environment::{Environment, RootPolicy, TrustPolicy};
use antiphon_project::state::STATE_VARIABLE;
use clap::Args;

/// Options of every command that works on the project of this folder.
#[derive(Debug, Args)]
pub(crate) struct ProjectArgs {
    /// Folder for the state of projects; `$XDG_STATE_HOME/antiphon` when absent.
    #[arg(long, global = true, env = STATE_VARIABLE, value_name = "DIR", hide_short_help = true)]
    state: Option<PathBuf>,

    /// Let the home folder, or a folder that holds your settings or state, be the root of a project.
    #[arg(long, global = true, hide_short_help = true)]
    allow_unsafe_root: bool,

    /// Trust what the project brings, as it is now: its settings, agents and request folders.
    #[arg(long, global = true, hide_short_help = true)]
    trust: bool,
}

impl ProjectArgs {
    /// The environment with these options.
    pub(crate) fn apply(&self, mut environment: Environment) -> Environment {
        if let Some(state) = &self.state {
            environment.variables.insert(STATE_VARIABLE.into(), state.into());
        }
        if self.allow_unsafe_root {
            environment.root_policy = RootPolicy::AllowUnsafe;
        }
        if self.trust {
            environment.trust_policy = TrustPolicy::TrustAll;
        }
        environment
    }
}
