//! The processes of a worker.
//!
//! They are three processes of one program. The runner starts the *guard*; the guard starts the
//! *first* process inside, waits for its end, and removes what it left. The first process restricts
//! itself, irrevocably, starts the process that *works*, and measures what all processes use. So no
//! code of a model runs before the restrictions are in force, and no tool can change them.
//!
//! | process that ends          | outcome                                                       |
//! |----------------------------|---------------------------------------------------------------|
//! | the runner, killed or not  | the socket closes; the working process stops, the guard kills the first one |
//! | the working process        | the first one ends, and the kernel ends every process inside  |
//! | the first one              | the kernel ends every process inside, the guard cleans up     |
//! | the guard                  | the kernel ends the first one                                 |

mod guard;
mod journal;
mod link;
mod ports;
mod provider;
mod supervisor;
mod usage;
mod work;

use std::io::{self, stdin};
use std::process::ExitCode;

use antiphon_core::port::RunnerError;

pub use ports::WorkerPorts;

use crate::setup::{Exit, SETUP, Setup};
use crate::wire::{FromWorker, send_now};

/// The main function of a worker. The program of [`WorkerCommand`](antiphon_sandbox::WorkerCommand)
/// must call it first, before it starts a thread or opens a file.
///
/// `work` runs in the last of the three processes, on a runtime of one thread, under all
/// restrictions. The runner returns its result. When the runner is gone, `work` is dropped and the
/// process ends.
pub fn worker_main(work: impl AsyncFnOnce(WorkerPorts) -> Result<(), RunnerError>) -> ExitCode {
    let exit = setup().and_then(|setup| match setup {
        Setup::Guard { purpose, policy, limits, kept } => {
            guard::run(purpose, policy, limits, kept.as_ref())
        }
        Setup::First { purpose, policy, limits } => supervisor::run(purpose, &policy, limits),
        Setup::Work { limits } => work::run(&limits, work),
    });
    exit.unwrap_or_else(|error| {
        // Fails when the runner is gone, and then no report is needed.
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
