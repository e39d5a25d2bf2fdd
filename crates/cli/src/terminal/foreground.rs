//! Whether the shell has given the terminal to this process.

use std::io::IsTerminal as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;

use crate::failure::Failure;

/// Pause of a process in the background before it looks at the terminal again.
const BACKGROUND_PAUSE: Duration = Duration::from_millis(200);

/// How long one look for a line takes, in nanoseconds.
const LOOK_AGAIN_NS: i64 = 200_000_000;

/// Whether this process may read the terminal: the shell stops a process in the background that does. Also true
/// without job control.
pub(crate) fn is_in_foreground() -> bool {
    tcgetpgrp(std::io::stdin()).map_or(true, |group| group == getpgrp())
}

/// Whether this process is in the background of a shell: it has a terminal, and another one has the user.
pub(crate) fn is_in_background() -> bool {
    std::io::stdin().is_terminal() && !is_in_foreground()
}

/// Refuses to read `what` from the terminal in the background, where the shell would stop this process.
pub(crate) fn check_readable(what: &str) -> Result<(), Failure> {
    if is_in_background() {
        return Err(Failure::usage(format!(
            "{what} cannot be read from the terminal in the background: give it as a file or an argument, or start \
             the command in the foreground"
        )));
    }
    Ok(())
}

/// Waits until standard input has something for this process. A process in the background leaves it to the shell.
/// False when standard input cannot be waited for. Calls `meanwhile` a few times a second.
pub(crate) fn wait_for_line(meanwhile: impl Fn()) -> bool {
    loop {
        meanwhile();
        let stdin = std::io::stdin();
        let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
        // Not longer: a process that leaves the terminal lets go of it.
        let pause = Timespec { tv_sec: 0, tv_nsec: LOOK_AGAIN_NS };
        match poll(&mut waits, Some(&pause)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) if is_in_foreground() => return true,
            Ok(_) => std::thread::sleep(BACKGROUND_PAUSE),
            Err(_) => return false,
        }
    }
}

/// Whether this process may draw on the terminal of standard error: a shell that has put it into the background shows
/// its own prompt there.
pub(crate) fn may_draw() -> bool {
    tcgetpgrp(std::io::stderr()).map_or(true, |group| group == getpgrp())
}
