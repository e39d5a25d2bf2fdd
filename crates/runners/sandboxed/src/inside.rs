//! The processes of a worker.
//!
//! They are three of one program. The *guard* is what the runner starts; it starts the *first* one
//! inside, waits until it ends, and takes away what it left. The first one restricts itself, for
//! good, starts the one that *works*, and counts what everybody takes. So nothing of a model's runs
//! before the restrictions hold, and no tool can touch who holds them.
//!
//! | who ends                   | what happens                                                  |
//! |----------------------------|---------------------------------------------------------------|
//! | the runner, killed or not  | the socket closes; the one that works stops, the guard kills the first one |
//! | the one that works         | the first one ends, and the kernel ends everything inside     |
//! | the first one              | the kernel ends everything inside, the guard clears up        |
//! | the guard                  | the kernel ends the first one                                 |

mod census;
mod first;
mod guard;
mod journal;
mod link;
mod ports;
mod provider;
mod work;

use std::io::{self, stdin};
use std::process::ExitCode;

use antiphon_core::port::RunnerError;

pub use ports::WorkerPorts;

use crate::setup::{Exit, SETUP, Setup};
use crate::wire::{FromWorker, send_now};

/// The main function of a worker. The program that [`WorkerCommand`](antiphon_sandbox::WorkerCommand)
/// names calls it before it does anything else: before it starts a thread or opens a file.
///
/// `work` runs in the last of the three processes, on a runtime of one thread, under all
/// restrictions. What it returns is what the runner returns. When the runner is gone, `work` is
/// dropped and the process ends.
pub fn worker_main(work: impl AsyncFnOnce(WorkerPorts) -> Result<(), RunnerError>) -> ExitCode {
    let exit = setup().and_then(|setup| match setup {
        Setup::Guard { purpose, policy, limits } => guard::run(purpose, policy, limits),
        Setup::First { purpose, policy, limits } => first::run(purpose, &policy, limits),
        Setup::Work { limits } => work::run(&limits, work),
    });
    exit.unwrap_or_else(|error| {
        // If the runner is gone, there is nobody to tell.
        let _ = refuse(&error);
        ExitCode::from(Exit::Refused.code())
    })
}

fn refuse(error: &io::Error) -> io::Result<()> {
    let runner = stdin_socket()?;
    let refused = FromWorker::Refused { reason: error.to_string() };
    send_now(&runner, &refused).map_err(io::Error::other)
}

/// The socket to the runner.
fn stdin_socket() -> io::Result<std::os::unix::net::UnixStream> {
    use std::os::fd::AsFd;
    Ok(stdin().as_fd().try_clone_to_owned()?.into())
}

fn setup() -> io::Result<Setup> {
    let setup = std::env::var(SETUP).map_err(|_| {
        io::Error::other("a worker is started by Antiphon itself; there is nothing to do for it")
    })?;
    Ok(serde_json::from_str(&setup)?)
}
