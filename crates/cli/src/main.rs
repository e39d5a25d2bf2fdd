//! The binary `antiphon`: reads arguments and environment once, wires, and prints.
//!
//! One file per command in the folders of `commands`. A command returns `Ok` or a [`Failure`], which carries the message
//! for the user and the exit code.

mod arguments;
mod commands;
mod environment;
mod failure;
mod first_run;
mod hints;
mod log;
mod signals;
mod terminal;
mod watch;
mod wiring;

use std::process::ExitCode;

use antiphon_project::environment::Environment;
use antiphon_project::{runners, task_worker, toolset};
use clap::{CommandFactory, FromArgMatches, Parser};
use clap_complete::CompleteEnv;

use tokio::runtime::Runtime;

use arguments::{permission_args, project_args, server_args};
use commands::completions;
use failure::Failure;
use remaining_work::RemainingWork;
use signals::{foreground_process, hang_up, stop_signal, suspension};
use terminal::{
    choice, color_choice, hidden_input, keyboard, standard_streams, terminal_mode, terminal_notice,
};
use watch::{outcome, screen};
use wiring::{interface, remaining_work, request_drop};

/// Chosen by measurement: `docs/decisions.md`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Name of the decider of an approval, or of a higher spend limit, in the journal.
pub(crate) const DECIDER: &str = "the command line";

/// A durable agent orchestrator.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    server: server_args::ServerArgs,
    #[command(flatten)]
    project: project_args::ProjectArgs,
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
    // A shell asks for completions: nothing is started.
    CompleteEnv::with_factory(|| completions::with_completions(command()))
        .var(completions::VARIABLE)
        .bin("antiphon")
        .complete();
    if let Some(exit_code) = foreground_process::start_working_process() {
        return exit_code;
    }
    let arguments = commands::with_default(std::env::args_os().collect());
    let matches = command().try_get_matches_from(arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return terminal::print_usage(&error),
    };
    let environment = cli.project.apply(environment::capture());
    let mut remaining_work = RemainingWork::default();
    let exit_code = match start(cli, &environment, &mut remaining_work) {
        Ok((runtime, ended)) => {
            keyboard::discard_unsent();
            let exit_code = report(ended);
            if let Some(work) = remaining_work.take() {
                foreground_process::leave_terminal(exit_code);
                runtime.block_on(work);
            }
            exit_code
        }
        Err(failure) => report(Err(failure)),
    };
    ExitCode::from(exit_code)
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    server_args::hide(Cli::command())
}

/// Prints why a command failed. Returns its exit code.
fn report(ended: Result<(), Failure>) -> u8 {
    match ended {
        Ok(()) => 0,
        Err(failure) => {
            terminal::note(&format!("antiphon: {failure}\n"));
            failure.exit.code()
        }
    }
}

fn start(
    cli: Cli,
    environment: &Environment,
    remaining_work: &mut RemainingWork,
) -> Result<(Runtime, Result<(), Failure>), Failure> {
    log::start(
        cli.command.log_format(),
        environment.text("ANTIPHON_LOG"),
        cli.command.log_detail(),
    );
    // Many agents at once keep more than one core busy.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let server = cli.server.server(environment)?;
    let ended = runtime.block_on(async {
        match server {
            Some(server) => cli.command.run_at(&server, environment).await,
            None => cli.command.run(environment, remaining_work).await,
        }
    });
    Ok((runtime, ended))
}
