//! The worker: runs commands on behalf of the shell, restricted as they are.
//!
//! It is two processes of one program. The *guard* is what the shell starts; it starts the other
//! one, waits until it ends, and takes away whatever it left. The one *inside* is restricted before
//! it takes its first order, so that whatever it starts is restricted from its first instruction.
//!
//! | who ends                        | what happens                                            |
//! |---------------------------------|---------------------------------------------------------|
//! | the shell, killed or not        | the socket closes, the one inside ends, the guard clears |
//! | the one inside                  | the kernel or the guard ends everything, the guard clears |
//! | the guard                       | the kernel ends the one inside                          |

mod census;
mod desk;
mod guard;
mod signals;

use std::io::{self, stdin};
use std::process::ExitCode;

use antiphon_sandbox::answer_probe;

pub(crate) use desk::PROCESSES_MAX;

use crate::message::{Reply, SETUP, Setup, Stage, packet, send};

/// The main function of a worker. The program that [`WorkerCommand`](crate::WorkerCommand) names
/// calls it before it does anything else: before it starts a thread or opens a file.
pub fn worker_main() -> ExitCode {
    if let Some(code) = answer_probe() {
        return code;
    }
    let done = setup().and_then(|setup| match setup.stage {
        Stage::Guard => guard::run(&setup),
        Stage::Inside => desk::run(&setup),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let refused = Reply::Refused { reason: error.to_string() };
            // If the shell is gone, there is nobody to tell.
            let _ = packet(&refused).and_then(|packet| send(stdin(), &packet, None));
            ExitCode::FAILURE
        }
    }
}

fn setup() -> io::Result<Setup> {
    let setup = std::env::var(SETUP).map_err(|_| {
        io::Error::other("a worker is started by Antiphon itself; there is nothing to do for it")
    })?;
    Ok(serde_json::from_str(&setup)?)
}
