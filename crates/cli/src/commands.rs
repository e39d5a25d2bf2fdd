//! The verbs, one file each.

mod approvals;
mod doctor;
mod models;
mod run;
mod sessions;
mod tasks;

use clap::Subcommand;

pub(crate) use run::Ask;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Run>),
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    Models(models::Models),
    Doctor(doctor::Doctor),
}

impl Command {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.run().await,
            Self::Tasks(tasks) => tasks.run().await,
            Self::Approvals(approvals) => approvals.run().await,
            Self::Sessions(sessions) => sessions.run().await,
            Self::Models(models) => models.run().await,
            Self::Doctor(doctor) => doctor.run().await,
        }
    }
}
