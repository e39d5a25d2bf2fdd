//! The commands, one file each, in folders by subject. They are used without the folder: `commands::run`.

mod definitions;
mod interfaces;
mod messages;
mod setup;
mod storage;
mod work;

use std::ffi::OsString;

use antiphon_process::{ProjectAccess, ProjectServer};
use antiphon_project::environment::Environment;
use clap::Subcommand;

use definitions::{agents, models, prompt};
use interfaces::{acp, keys, mcp, serve, token};
use messages::{inbox, reply, request, send};
pub(crate) use setup::completions;
use setup::{config, demo, doctor, import, init, man, trust};
use storage::{backup, journal, projects, restore};
use work::{approvals, budget, chat, run, sessions, tasks, usage};

use crate::failure::Failure;
use crate::log::{LogDetail, LogFormat};
use crate::remaining_work::RemainingWork;
use crate::server_args::not_through_server;

/// The arguments with the command that `antiphon` alone stands for, on a terminal: the terminal program.
pub(crate) fn with_default(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if chat::is_meant(&arguments) {
        arguments.insert(1, chat::NAME.into());
    }
    arguments
}

/// Whether the process of these arguments may own the journal while others use it: `antiphon run`, `antiphon tasks
/// resume` and `antiphon chat`. A command that has such a word elsewhere counts too.
pub(crate) fn may_work_for_others(arguments: Vec<OsString>) -> bool {
    let names = ["run", "resume", chat::NAME];
    with_default(arguments).iter().skip(1).any(|argument| names.iter().any(|name| argument == name))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Chat(Box<chat::Chat>),
    Acp(acp::Acp),
    #[command(subcommand)]
    Mcp(mcp::Mcp),
    Init(init::Init),
    #[command(subcommand)]
    Config(config::Config),
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
    Reply(reply::Reply),
    Serve(Box<serve::Serve>),
    #[command(subcommand)]
    Keys(keys::Keys),
    Token(token::Token),
    Trust(trust::Trust),
    Import(import::Import),
    #[command(subcommand)]
    Projects(projects::Projects),
    #[command(subcommand)]
    Prompt(prompt::Prompt),
    Backup(backup::Backup),
    Restore(restore::Restore),
    #[command(subcommand)]
    Journal(journal::Journal),
    #[command(subcommand)]
    Budget(budget::BudgetOf),
    Usage(usage::UsageOf),
    Models(models::Models),
    Doctor(doctor::Doctor),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Format of the log on standard error.
    pub(crate) fn log_format(&self) -> LogFormat {
        match self {
            Self::Serve(serve) => serve.log_format(),
            Self::Chat(_)
            | Self::Acp(_)
            | Self::Mcp(_)
            | Self::Init(_)
            | Self::Config(_)
            | Self::Demo(_)
            | Self::Run(_)
            | Self::Agents(_)
            | Self::Tasks(_)
            | Self::Approvals(_)
            | Self::Sessions(_)
            | Self::Send(_)
            | Self::Inbox(_)
            | Self::Request(_)
            | Self::Reply(_)
            | Self::Keys(_)
            | Self::Token(_)
            | Self::Trust(_)
            | Self::Import(_)
            | Self::Projects(_)
            | Self::Prompt(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Journal(_)
            | Self::Budget(_)
            | Self::Usage(_)
            | Self::Models(_)
            | Self::Doctor(_)
            | Self::Completions(_)
            | Self::Man(_) => LogFormat::default(),
        }
    }

    /// What it shows besides its log.
    pub(crate) fn log_detail(&self) -> LogDetail {
        if matches!(self, Self::Chat(_)) {
            LogDetail::InRows
        } else if matches!(self, Self::Run(_)) {
            LogDetail::OnStatusLine
        } else {
            LogDetail::Usual
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
            Self::Tasks(tasks) => tasks.run(access(), &mut RemainingWork::default()).await,
            Self::Approvals(approvals) => approvals.run(access()).await,
            Self::Sessions(sessions) => sessions.run(access()).await,
            Self::Send(send) => send.run_at(server).await,
            Self::Inbox(inbox) => inbox.run_at(server, environment).await,
            Self::Budget(budget) => budget.run_at(server, environment).await,
            Self::Usage(usage) => usage.run_at(server).await,
            Self::Chat(_) => Err(not_through_server("chat")),
            Self::Acp(_) => Err(not_through_server("acp")),
            Self::Mcp(_) => Err(not_through_server("mcp")),
            Self::Init(_) => Err(not_through_server("init")),
            Self::Config(_) => Err(not_through_server("config")),
            Self::Demo(_) => Err(not_through_server("demo")),
            Self::Run(run) => Box::pin(run.run_at(server, environment)).await,
            Self::Request(_) => Err(not_through_server("request")),
            Self::Reply(_) => Err(not_through_server("reply")),
            Self::Serve(_) => Err(not_through_server("serve")),
            Self::Keys(_) => Err(not_through_server("keys")),
            Self::Token(_) => Err(not_through_server("token")),
            Self::Trust(_) => Err(not_through_server("trust")),
            Self::Import(_) => Err(not_through_server("import")),
            Self::Projects(_) => Err(not_through_server("projects")),
            Self::Prompt(_) => Err(not_through_server("prompt")),
            Self::Backup(_) => Err(not_through_server("backup")),
            Self::Restore(_) => Err(not_through_server("restore")),
            Self::Journal(_) => Err(not_through_server("journal")),
            Self::Models(models) => models.run_at(server, environment).await,
            Self::Doctor(_) => Err(not_through_server("doctor")),
            Self::Completions(_) => Err(not_through_server("completions")),
            Self::Man(_) => Err(not_through_server("man")),
        };
        done.map_err(|failure| server.journal_error().map_or(failure, Failure::from))
    }

    pub(crate) async fn run(
        self,
        environment: &Environment,
        remaining_work: &mut RemainingWork,
    ) -> Result<(), Failure> {
        match self {
            Self::Chat(chat) => Box::pin(chat.run(environment, remaining_work)).await,
            Self::Acp(acp) => Box::pin(acp.run(environment)).await,
            Self::Mcp(mcp) => Box::pin(mcp.run(environment)).await,
            Self::Init(init) => init.run(environment).await,
            Self::Config(config) => config.run(environment),
            Self::Demo(demo) => demo.run(environment).await,
            Self::Run(run) => Box::pin(run.run(environment, remaining_work)).await,
            Self::Agents(agents) => agents.run(environment).await,
            Self::Tasks(tasks) => {
                tasks.run(ProjectAccess::of_folder(environment)?, remaining_work).await
            }
            Self::Approvals(approvals) => {
                approvals.run(ProjectAccess::of_folder(environment)?).await
            }
            Self::Sessions(sessions) => sessions.run_in_folder(environment).await,
            Self::Send(send) => send.run(environment).await,
            Self::Inbox(inbox) => inbox.run(environment).await,
            Self::Request(request) => request.run(environment).await,
            Self::Reply(reply) => reply.run(environment).await,
            Self::Serve(serve) => serve.run(environment).await,
            Self::Keys(keys) => keys.run(environment),
            Self::Token(_) => token::Token::run(environment),
            Self::Trust(trust) => trust.run(environment),
            Self::Import(import) => import.run(environment),
            Self::Projects(projects) => projects.run(environment),
            Self::Prompt(prompt) => prompt.run(environment).await,
            Self::Backup(backup) => backup.run(environment).await,
            Self::Restore(restore) => restore.run(environment).await,
            Self::Journal(journal) => journal.run(environment).await,
            Self::Budget(budget) => budget.run(environment).await,
            Self::Usage(usage) => usage.run(environment).await,
            Self::Models(models) => models.run(environment).await,
            Self::Doctor(doctor) => doctor.run(environment).await,
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(crate::command()),
        }
    }
}
