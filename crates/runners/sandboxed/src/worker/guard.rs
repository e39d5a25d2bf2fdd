//! The process outside. It is never restricted and runs nothing but the first process inside. It
//! outlives every other process and cleans up.

use std::fs;
use std::io::{self, stdin};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use antiphon_sandbox::Policy;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};

use crate::kept_files::KeptFiles;
use crate::limits::WorkerLimits;
use crate::setup::{Exit, Purpose, SETUP, Setup};

pub(super) fn run(
    purpose: Purpose,
    policy: Policy,
    limits: WorkerLimits,
    kept: Option<&KeptFiles>,
) -> io::Result<ExitCode> {
    close_inherited()?;
    // Detach from the terminal. Fails only for a group leader.
    let _ = setsid();
    let supervisor = Setup::First { purpose, policy: policy.clone(), limits };
    let mut command = Command::new("/proc/self/exe");
    command
        .args(std::env::args_os().skip(1))
        .env(SETUP, serde_json::to_string(&supervisor)?)
        .stdout(Stdio::null());
    let confined = policy.confine(&mut command).map_err(io::Error::other);
    let mut confined = confined.inspect_err(|_| policy.remove_tmp())?;
    // When its end is seen, the kernel has ended every process it started.
    let ended = watch(&mut confined.child);
    if let Some(kept) = kept {
        kept.save(&policy.tmp);
    }
    policy.remove_tmp();
    drop(confined);
    let code = ended?.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(Exit::Killed.code())))
}

/// Waits until the first process has ended. Kills it once the runner is gone: then nothing can be
/// recorded.
fn watch(supervisor: &mut Child) -> io::Result<ExitStatus> {
    let pid = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw);
    let process = pidfd_open(pid.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
    let runner = stdin();
    let mut watched =
        [PollFd::new(&process, PollFlags::IN), PollFd::new(&runner, PollFlags::empty())];
    retry_on_intr(|| poll(&mut watched, None))?;
    if watched[0].revents().is_empty() {
        supervisor.kill()?;
    }
    supervisor.wait()
}

/// Closes descriptors that were inherited from the runner.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the directory listing itself, which is closed by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}
