//! The binary `antiphon`: the composition root. The only place that reads the environment,
//! wires adapters and speaks to the terminal.
//!
//! One file per verb in `commands`. A verb returns `Ok` or a [`Failure`], which carries what
//! to tell the person and the exit code.

mod agent_file;
mod catalog;
mod commands;
mod config;
mod connection;
mod desk;
mod failure;
mod hands;
mod keyboard;
mod log;
mod models;
mod orders;
mod outcome;
mod project;
mod prompt;
mod role;
mod route;
mod saved;
mod screen;
mod server_args;
mod shelf;
mod spend_limits;
mod task_worker;
mod team;
mod terminal;
mod watch;

use std::process::ExitCode;

use clap::Parser;

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
    // A worker is not a command: nothing may happen before it.
    match std::env::args_os().nth(1) {
        Some(first) if first == hands::WORKER => return antiphon_shell::worker_main(),
        Some(first) if first == task_worker::TASK_WORKER => return task_worker::main(),
        Some(first) if first == team::TERMINAL_GUARD => return antiphon_terminal::guard_main(),
        Some(_) | None => {}
    }
    let cli = Cli::parse();
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("antiphon: {}", antiphon_core::visible(&failure.to_string()));
            failure.exit.into()
        }
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    log::begin(cli.command.log_format());
    // Ten thousand agents at once keep more than one core busy.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let server = cli.server.server()?;
    runtime.block_on(async {
        match server {
            Some(server) => cli.command.run_at(&server).await,
            None => cli.command.run().await,
        }
    })
}
