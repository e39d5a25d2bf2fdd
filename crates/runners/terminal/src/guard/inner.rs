//! The process that becomes the program. It ends with its guard, leads its own session, and has the
//! terminal.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::process::{Signal, getppid, ioctl_tiocsctty, set_parent_process_death_signal, setsid};
use rustix::stdio::stdin;

use crate::setup::SETUP;

/// Returns only if the program cannot be started.
pub(super) fn run(guard: i32, command: &[OsString]) -> io::Error {
    if let Err(error) = prepare(guard) {
        return error;
    }
    let Some((program, args)) = command.split_first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    let error = Command::new(program).args(args).env_remove(SETUP).exec();
    io::Error::other(format!("`{}` cannot be started: {error}", program.display()))
}

fn prepare(guard: i32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid().is_none_or(|parent| parent.as_raw_pid() != guard) {
        return Err(io::Error::other("the guard is gone"));
    }
    // The guard's blocked signals must not be blocked in the program.
    SigSet::empty().thread_set_mask()?;
    setsid()?;
    Ok(ioctl_tiocsctty(stdin())?)
}
