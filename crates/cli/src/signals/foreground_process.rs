//! The foreground process of `antiphon run` and `antiphon tasks resume`: the one that the shell started.
//!
//! It starts a second process in the same process group, which does the work. When that has answered and calls of
//! other processes' tasks still run there, it leaves the terminal, and the foreground process ends with its exit
//! code: the shell has its prompt back, and no call is cut off.
//!
//! | what happens                           | then the foreground process                                     |
//! |----------------------------------------|-----------------------------------------------------------------|
//! | it gets a signal of the terminal       | does nothing, except at its end ([`hang_up`]): all have got it  |
//! | it gets a signal of another process    | passes it on; one to suspend, only if the working process has not got it too |
//! | the working process is stopped         | stops too, and continues it when it is continued itself         |
//! | it is killed                           | is gone, and the kernel kills the working process too           |
//! | the working process ends               | ends with the same exit code                                    |
//! | the working process leaves the terminal | ends with the exit code that the name of that process says     |

mod leaving;
mod suspension;

use std::env;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use rustix::process::{getpid, getppid, kill_process, set_parent_process_death_signal};

use crate::commands::may_work_for_others;
use crate::terminal_mode::TerminalMode;
use crate::{hang_up, keyboard, terminal_mode};
use leaving::left;
use suspension::{Suspending, pass_on, stop_with};

pub(crate) use leaving::leave_terminal;

/// Variable that has the id of the foreground process, in the environment of the working process.
pub(crate) const VARIABLE: &str = "ANTIPHON_FOREGROUND_PID";

/// Signals that are passed on. The last one is also sent by the working process.
const PASSED_ON: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGUSR1,
];

/// Starts a process that does the work, and waits for its exit code. `None` when this process does the work
/// itself.
pub(crate) fn start_working_process() -> Option<ExitCode> {
    if is_working_process() {
        // It starts with the signals blocked that the foreground process waits for.
        let _ = waited_for().thread_unblock();
        // Killing the process that the shell knows ends the work.
        let _ = set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if !is_working_process() {
            std::process::exit(1);
        }
        return None;
    }
    if !may_work_for_others(env::args_os().collect()) {
        return None;
    }
    let mode = TerminalMode::now();
    let signals = waited_for();
    let received = SignalFd::new(&signals).ok()?;
    let mut command = Command::new("/proc/self/exe");
    // Help and usage errors name the program by it.
    command.arg0(env::args_os().next().unwrap_or_else(|| "antiphon".into()));
    command.args(env::args_os().skip(1)).env(VARIABLE, getpid().as_raw_nonzero().to_string());
    // Before the process starts, so that none of its signals is missed.
    signals.thread_block().ok()?;
    match command.spawn() {
        Ok(child) => {
            let end = watch(child, &received);
            let had_terminal = mode.restore();
            Some(match end {
                End::Code(code) => code,
                End::Killed => {
                    keyboard::discard_typed();
                    if had_terminal {
                        terminal_mode::reset_screen();
                    }
                    // The shell reports it as it would without a second process.
                    let _ = kill_process(getpid(), rustix::process::Signal::KILL);
                    ExitCode::FAILURE
                }
            })
        }
        Err(_) => {
            let _ = signals.thread_unblock();
            None
        }
    }
}

/// The signals that the foreground process waits for.
fn waited_for() -> SigSet {
    PASSED_ON.iter().chain(&[Signal::SIGCHLD]).copied().collect()
}

/// Whether the parent of this process is the foreground process.
fn is_working_process() -> bool {
    let foreground = env::var(VARIABLE).ok().and_then(|pid| pid.parse().ok());
    foreground.is_some() && getppid().map(|parent| parent.as_raw_nonzero().get()) == foreground
}

/// How the working process has ended.
enum End {
    /// With this exit code, also when it left the terminal.
    Code(ExitCode),
    /// By SIGKILL: it restored and discarded nothing.
    Killed,
}

fn watch(mut child: Child, received: &SignalFd) -> End {
    let own = std::process::id();
    let mut suspending = Suspending::default();
    loop {
        if suspending.is_for_this_process_alone(received) {
            pass_on(&child, Signal::SIGTSTP);
            continue;
        }
        let info = match received.read_signal() {
            Ok(Some(info)) => info,
            Ok(None) | Err(Errno::EINTR) => continue,
            Err(_) => return child.wait().map_or(End::Code(ExitCode::FAILURE), ended),
        };
        let signal = i32::try_from(info.ssi_signo).ok().and_then(|it| Signal::try_from(it).ok());
        let is_of_child = info.ssi_pid == child.id();
        match signal {
            Some(Signal::SIGCHLD) => {
                if let Ok(Some(status)) = child.try_wait() {
                    return ended(status);
                }
                if stop_with(&child, &info) {
                    suspending = Suspending::default();
                }
            }
            Some(Signal::SIGUSR1) if is_of_child => return End::Code(left(&child)),
            Some(Signal::SIGHUP) if info.ssi_code > 0 => hang_up::tell_group(),
            Some(Signal::SIGTSTP) if info.ssi_code <= 0 && info.ssi_pid != own => {
                suspending.begin();
            }
            // Other signals of the terminal have a positive code too, and go to the whole group.
            Some(signal) if info.ssi_code <= 0 && info.ssi_pid != own => pass_on(&child, signal),
            Some(_) | None => {}
        }
    }
}

fn ended(status: ExitStatus) -> End {
    if status.signal() == Some(Signal::SIGKILL as i32) {
        return End::Killed;
    }
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    End::Code(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
