//! The worker: runs the commands of a task under the sandbox.
//!
//! It is two processes of one program. The shell starts the *guard*, which starts the *inner*
//! process, waits for its end, and removes what it left. The inner process restricts itself before
//! it accepts its first request, so every command is restricted from its first instruction.
//!
//! | process that ends               | outcome                                                         |
//! |---------------------------------|-----------------------------------------------------------------|
//! | the shell, killed or not        | the socket closes, the inner process ends, the guard cleans up  |
//! | the inner process               | the kernel or the guard ends every process, the guard cleans up |
//! | the guard                       | the kernel ends the inner process                               |

mod command_loop;
mod guard;
mod process_list;
mod proxy_socket;
mod shared_memory;
mod signals;
mod usage;

use std::io::{self, stdin};
use std::process::ExitCode;

use antiphon_sandbox::answer_probe;

use crate::message::{Reply, SETUP, Setup, WorkerRole, packet, send};

/// The main function of a worker. The program of [`WorkerCommand`](crate::WorkerCommand) must call
/// it first, before it starts a thread or opens a file.
pub fn worker_main() -> ExitCode {
    if let Some(code) = answer_probe() {
        return code;
    }
    let result = setup().and_then(|setup| match setup.role {
        WorkerRole::Guard => guard::run(&setup),
        WorkerRole::Inner => command_loop::run(&setup),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let refused = Reply::Refused { reason: error.to_string() };
            // Fails when the shell is gone, and then no report is needed.
            let _ = packet(&refused).and_then(|packet| send(stdin(), &packet, None));
            ExitCode::FAILURE
        }
    }
}

fn setup() -> io::Result<Setup> {
    let setup = std::env::var(SETUP)
        .map_err(|_| io::Error::other("`antiphon` starts this worker itself: do not run it"))?;
    Ok(serde_json::from_str(&setup)?)
}
