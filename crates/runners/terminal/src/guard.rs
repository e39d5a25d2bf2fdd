//! The processes of a terminal.
//!
//! They are two processes of one program. The runner starts the *guard*; the guard starts the
//! *inner* process, which takes the terminal and becomes the program. Every process that the
//! program leaves becomes a child of the guard, and the guard ends it.
//!
//! | process that ends          | outcome                                                       |
//! |----------------------------|---------------------------------------------------------------|
//! | the program                | the guard reports how, and ends the remaining processes       |
//! | the runner, killed or not  | the socket closes, the guard ends every process               |
//! | the guard                  | the kernel kills the program and hangs up its terminal; the runner finds remaining processes by their environment variable |

mod inner;
pub(crate) mod process_list;
mod watch;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use crate::setup::{ProcessRole, SETUP, Setup};

/// How long a program may take to end after SIGTERM before it is killed.
pub const GRACE: Duration = Duration::from_secs(2);

/// Exit code of a program that could not be started, as in shells.
const NOT_STARTED: u8 = 127;

/// The main function of a guard. The program of [`GuardCommand`](crate::GuardCommand) must call it
/// first, before it starts a thread or opens a file.
pub fn guard_main() -> ExitCode {
    let done = setup().and_then(|(setup, own, command)| match setup.role {
        ProcessRole::Guard => watch::run(&own, &command),
        ProcessRole::Inner { guard } => Err(inner::run(guard, &command)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the terminal: watchers see it.
            eprintln!("antiphon: {error}");
            ExitCode::from(NOT_STARTED)
        }
    }
}

/// The setup, our own arguments, and the command.
fn setup() -> io::Result<(Setup, Vec<OsString>, Vec<OsString>)> {
    let setup = std::env::var(SETUP).map_err(|_| {
        io::Error::other("a guard is started by Antiphon itself; there is nothing to do for it")
    })?;
    let setup: Setup = serde_json::from_str(&setup)?;
    let mut own: Vec<OsString> = std::env::args_os().skip(1).collect();
    if own.len() <= setup.own_args {
        return Err(io::Error::other("there is no command"));
    }
    let command = own.split_off(setup.own_args);
    Ok((setup, own, command))
}
