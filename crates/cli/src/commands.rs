//! The verbs, one file each.

mod doctor;
mod models;
mod run;
mod sessions;
mod tasks;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Run>),
    #[command(subcommand)]
    Tasks(tasks::Tasks),
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
            Self::Sessions(sessions) => sessions.run(),
            Self::Models(models) => models.run().await,
            Self::Doctor(doctor) => doctor.run().await,
        }
    }
}
