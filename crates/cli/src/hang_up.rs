//! The end of the terminal, for the process that leads its session.

use rustix::process::{Signal, getpid, getsid, kill_current_process_group};

/// Tells the process group that the terminal is gone, when this process leads the session, as a command does that a
/// terminal was opened for: the kernel tells it only to the leader. Also a program that has the terminal for a while
/// learns of it.
pub(crate) fn tell_group() {
    if getsid(None) == Ok(getpid()) {
        // It has at least this process.
        let _ = kill_current_process_group(Signal::HUP);
    }
}
