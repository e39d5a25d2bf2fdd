//! The verbs, one file each.

pub(crate) mod agents;
mod approvals;
pub(crate) mod attach;
mod doctor;
mod inbox;
mod models;
mod request;
mod run;
mod send;
mod serve;
mod sessions;
mod tasks;

use clap::Subcommand;

pub(crate) use run::Ask;

use crate::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<run::Run>),
    #[command(subcommand)]
    Agents(agents::Agents),
    #[command(subcommand)]
    Tasks(tasks::Tasks),
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    Send(Box<send::Send>),
    #[command(subcommand)]
    Inbox(inbox::Inbox),
    Request(request::Request),
    Serve(serve::Serve),
    Models(models::Models),
    Doctor(doctor::Doctor),
}

impl Command {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.run().await,
            Self::Agents(agents) => agents.run().await,
            Self::Tasks(tasks) => tasks.run().await,
            Self::Approvals(approvals) => approvals.run().await,
            Self::Sessions(sessions) => sessions.run().await,
            Self::Send(send) => send.run().await,
            Self::Inbox(inbox) => inbox.run().await,
            Self::Request(request) => request.run().await,
            Self::Serve(serve) => serve.run().await,
            Self::Models(models) => models.run().await,
            Self::Doctor(doctor) => doctor.run().await,
        }
    }
}
