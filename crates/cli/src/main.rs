//! The binary `antiphon`: the composition root. The only place that reads the environment,
//! wires adapters and speaks to the terminal.
//!
//! One file per verb in `commands`. A verb returns `Ok` or a [`Failure`], which carries what
//! to tell the person and the exit code.

mod agent_file;
mod catalog;
mod commands;
mod config;
mod desk;
mod failure;
mod hands;
mod ink;
mod keyboard;
mod models;
mod orders;
mod outcome;
mod project;
mod prompt;
mod role;
mod route;
mod saved;
mod screen;
mod served;
mod task_worker;
mod team;
mod terminal;
mod watch;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use failure::Failure;

/// What is logged when nobody asks for more. `rmcp` warns of what is none of ours to mend.
const QUIET: &str = "warn,rmcp=error";

/// A durable agent orchestrator.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
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

/// What the program says of itself, on standard error: warnings, or what `ANTIPHON_LOG` asks for.
/// Never what people or models wrote.
fn log() {
    let wanted = std::env::var("ANTIPHON_LOG").ok().filter(|wanted| !wanted.trim().is_empty());
    let filter = EnvFilter::builder().parse_lossy(wanted.as_deref().unwrap_or(QUIET));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let ansi = std::io::stderr().is_terminal();
    match wanted {
        Some(_) => log.with_ansi(ansi).init(),
        None => log.with_ansi(ansi).without_time().with_target(false).compact().init(),
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    log();
    // Ten thousand agents at once keep more than one core busy.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(cli.command.run())
}
