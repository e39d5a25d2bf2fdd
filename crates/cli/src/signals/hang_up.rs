//! The end of the terminal, for the process that leads its session.

use rustix::process::{Signal, getpid, getsid, kill_current_process_group};

/// Sends SIGHUP to the process group, when this process leads the session, as a command does that a terminal was
/// opened for: the kernel sends it only to the leader. So a program that has the terminal for a while gets it too.
pub(crate) fn tell_group() {
    if getsid(None) == Ok(getpid()) {
        // It has at least this process.
        let _ = kill_current_process_group(Signal::HUP);
    }
}
