//! The commands, one file each.

mod agents;
mod approvals;
mod attach;
mod backup;
mod budget;
mod demo;
mod doctor;
mod inbox;
mod keys;
mod models;
mod request;
mod restore;
mod run;
mod send;
mod serve;
mod sessions;
mod tasks;
mod usage;

use antiphon_project::environment::Environment;
use clap::Subcommand;

use crate::connection::{ProjectAccess, ProjectServer};
use crate::failure::Failure;
use crate::log::LogFormat;
use crate::server_args::not_through_server;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
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
    Serve(Box<serve::Serve>),
    #[command(subcommand)]
    Keys(keys::Keys),
    Backup(backup::Backup),
    Restore(restore::Restore),
    #[command(subcommand)]
    Budget(budget::BudgetOf),
    Usage(usage::UsageOf),
    Models(models::Models),
    Doctor(doctor::Doctor),
}

impl Command {
    /// Format of the log on standard error.
    pub(crate) fn log_format(&self) -> LogFormat {
        match self {
            Self::Serve(serve) => serve.log_format(),
            Self::Demo(_)
            | Self::Run(_)
            | Self::Agents(_)
            | Self::Tasks(_)
            | Self::Approvals(_)
            | Self::Sessions(_)
            | Self::Send(_)
            | Self::Inbox(_)
            | Self::Request(_)
            | Self::Keys(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Budget(_)
            | Self::Usage(_)
            | Self::Models(_)
            | Self::Doctor(_) => LogFormat::default(),
        }
    }

    /// Runs the command through a server elsewhere, if it can.
    pub(crate) async fn run_at(
        self,
        server: &ProjectServer,
        environment: &Environment,
    ) -> Result<(), Failure> {
        let access = || ProjectAccess::of_server(server, environment);
        let done = match self {
            Self::Agents(agents) => agents.run_at(server).await,
            Self::Tasks(tasks) => tasks.run(access()).await,
            Self::Approvals(approvals) => approvals.run(access()).await,
            Self::Sessions(sessions) => sessions.run(access()).await,
            Self::Send(send) => send.run_at(server).await,
            Self::Inbox(inbox) => inbox.run_at(server, environment).await,
            Self::Budget(budget) => budget.run_at(server, environment).await,
            Self::Usage(usage) => usage.run_at(server).await,
            Self::Demo(_) => Err(not_through_server("demo")),
            Self::Run(_) => Err(not_through_server("run")),
            Self::Request(_) => Err(not_through_server("request")),
            Self::Serve(_) => Err(not_through_server("serve")),
            Self::Keys(_) => Err(not_through_server("keys")),
            Self::Backup(_) => Err(not_through_server("backup")),
            Self::Restore(_) => Err(not_through_server("restore")),
            Self::Models(_) => Err(not_through_server("models")),
            Self::Doctor(_) => Err(not_through_server("doctor")),
        };
        done.map_err(|failure| server.explain(failure))
    }

    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        match self {
            Self::Demo(demo) => demo.run(environment).await,
            Self::Run(run) => run.run(environment).await,
            Self::Agents(agents) => agents.run(environment).await,
            Self::Tasks(tasks) => tasks.run(ProjectAccess::of_folder(environment)?).await,
            Self::Approvals(approvals) => {
                approvals.run(ProjectAccess::of_folder(environment)?).await
            }
            Self::Sessions(sessions) => sessions.run_in_folder(environment).await,
            Self::Send(send) => send.run(environment).await,
            Self::Inbox(inbox) => inbox.run(environment).await,
            Self::Request(request) => request.run(environment).await,
            Self::Serve(serve) => serve.run(environment).await,
            Self::Keys(keys) => keys.run(environment),
            Self::Backup(backup) => backup.run(environment).await,
            Self::Restore(restore) => restore.run(environment).await,
            Self::Budget(budget) => budget.run(environment).await,
            Self::Usage(usage) => usage.run(environment).await,
            Self::Models(models) => models.run(environment).await,
            Self::Doctor(doctor) => doctor.run(environment).await,
        }
    }
}
