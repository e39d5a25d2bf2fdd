//! The working process leaves the terminal: its name says the exit code of the foreground process.

use std::ffi::CString;
use std::fs::{self, File};
use std::process::{Child, ExitCode};

use rustix::process::{getppid, kill_process, set_parent_process_death_signal, setsid};

use super::is_working_process;

/// Name of a process that has left the terminal, before its exit code.
const LEFT: &str = "antiphon:";

/// The exit code of a process that has left the terminal.
pub(super) fn left(child: &Child) -> ExitCode {
    let name = fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
    let code = name.trim().strip_prefix(LEFT).and_then(|code| code.parse::<u8>().ok());
    ExitCode::from(code.unwrap_or(1))
}

/// Leaves the terminal: the foreground process ends with this exit code, and this one goes on. Without a
/// foreground process it stays where it is. On the main thread.
pub(crate) fn leave_terminal(exit_code: u8) {
    if !is_working_process() {
        return;
    }
    let Some(foreground) = getppid() else { return };
    let _ = set_parent_process_death_signal(None);
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
    let _ = setsid();
    if let Ok(name) = CString::new(format!("{LEFT}{exit_code}")) {
        let _ = rustix::thread::set_name(&name);
    }
    let _ = kill_process(foreground, rustix::process::Signal::USR1);
}
