//! `antiphon journal`: verifies, repairs, compacts and prunes the journal of this project.

mod compact;
mod progress;
mod prune;
mod repair;
mod verify;

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use clap::Subcommand;
use compact::Compact;
use prune::Prune;
use repair::Repair;
use verify::Verify;

use crate::failure::Failure;

/// Verify, repair, compact or prune the journal of this project (see docs/journal.md).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon journal verify
  antiphon journal compact
  antiphon journal prune --keep 100")]
pub(crate) enum Journal {
    Verify(Verify),
    Repair(Repair),
    Compact(Compact),
    Prune(Prune),
}

impl Journal {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find_existing(environment)?;
        match self {
            Self::Verify(verify) => verify.run(&project).await,
            Self::Repair(repair) => repair.run(&project).await,
            Self::Compact(compact) => compact.run(&project).await,
            Self::Prune(prune) => prune.run(&project).await,
        }
    }
}
