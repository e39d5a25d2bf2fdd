//! The binary `antiphon`: reads arguments and environment once, wires, and prints.
//!
//! One file per command in `commands`. A command returns `Ok` or a [`Failure`], which carries the message
//! for the user and the exit code.

mod commands;
mod connection;
mod environment;
mod failure;
mod keyboard;
mod log;
mod outcome;
mod screen;
mod server_args;
mod terminal;
mod watch;

use std::process::ExitCode;

use antiphon_project::environment::Environment;
use antiphon_project::{runners, task_worker, toolset};
use clap::{CommandFactory, FromArgMatches, Parser};

use failure::Failure;

/// A durable agent orchestrator.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    server: server_args::ServerArgs,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    // A worker is not a command: nothing may happen before it starts.
    match std::env::args_os().nth(1) {
        Some(first) if first == toolset::WORKER => return antiphon_shell::worker_main(),
        Some(first) if first == task_worker::TASK_WORKER => {
            return task_worker::worker_main(&environment::capture());
        }
        Some(first) if first == runners::TERMINAL_GUARD => return antiphon_terminal::guard_main(),
        Some(_) | None => {}
    }
    let cli = match Cli::from_arg_matches(&server_args::hide(Cli::command()).get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match start(cli, &environment::capture()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("antiphon: {}", antiphon_core::visible(&failure.to_string()));
            failure.exit.into()
        }
    }
}

fn start(cli: Cli, environment: &Environment) -> Result<(), Failure> {
    log::start(cli.command.log_format(), environment.text("ANTIPHON_LOG"));
    // Many agents at once keep more than one core busy.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let server = cli.server.server()?;
    runtime.block_on(async {
        match server {
            Some(server) => cli.command.run_at(&server, environment).await,
            None => cli.command.run(environment).await,
        }
    })
}
