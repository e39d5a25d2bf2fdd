//! The processes of a terminal.
//!
//! They are two of one program. The *guard* is what the runner starts; it starts the one *inside*,
//! which makes the terminal its own and becomes the program. Whatever the program leaves behind
//! becomes the guard's child, however it was started, and the guard ends it.
//!
//! | who ends                   | what happens                                                  |
//! |----------------------------|---------------------------------------------------------------|
//! | the program                | the guard says how, and ends what is left                     |
//! | the runner, killed or not  | the socket closes, the guard ends everything                  |
//! | the guard                  | the kernel kills the program and hangs up its terminal; what hid from both is found by its mark when the runner notices |

pub(crate) mod census;
mod inside;
mod watch;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use crate::setup::{SETUP, Setup, Stage};

/// How long a program that is asked to end may take before it is killed.
pub const GRACE: Duration = Duration::from_secs(2);

/// The exit code of a program that could not be started, as shells have it.
const NOT_STARTED: u8 = 127;

/// The main function of a guard. The program that [`GuardCommand`](crate::GuardCommand) names calls
/// it before it does anything else: before it starts a thread or opens a file.
pub fn guard_main() -> ExitCode {
    let done = setup().and_then(|(setup, own, command)| match setup.stage {
        Stage::Guard => watch::run(&own, &command),
        Stage::Inside { guard } => Err(inside::run(guard, &command)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error is the terminal: whoever watches sees it.
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
