//! The guard of a worker. It is never restricted and runs nothing but the inner process. It
//! outlives every other process and cleans up.

use std::fs;
use std::io::{self, stdin};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_sandbox::SandboxMode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, getpid, kill_process, setsid};

use super::process_list::{ProcessList, Scope};
use super::signals::Signals;
use crate::message::{SETUP, Setup, WorkerRole};

/// How long the inner process may take to end after the shell is gone.
const INNER_EXIT_WAIT: Duration = Duration::from_secs(1);

/// How long killed processes may take to end: some wait for a disk.
const CLEANUP_MAX: Duration = Duration::from_secs(5);

pub(super) fn run(setup: &Setup) -> io::Result<()> {
    close_inherited()?;
    // Detach from the terminal. Fails only for a group leader.
    let _ = setsid();
    let inner = Setup { role: WorkerRole::Inner, ..setup.clone() };
    let mut command = Command::new("/proc/self/exe");
    command
        .args(std::env::args_os().skip(1))
        .env(SETUP, serde_json::to_string(&inner)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let confined = setup.policy.confine(&mut command).map_err(io::Error::other);
    let confined = confined.inspect_err(|_| setup.policy.remove_tmp())?;
    let signals = Signals::watch()?;
    let waited = wait_for(confined.child.id(), &signals);
    match setup.policy.mode {
        SandboxMode::Full => kill_descendants(&signals),
        // The kernel has ended every process of the namespace.
        SandboxMode::ReadOnly | SandboxMode::Workspace => {}
    }
    setup.policy.remove_tmp();
    drop(confined);
    waited
}

/// Closes descriptors that were inherited from the shell.
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

/// Waits until the inner process has ended. Kills it if it does not end after the shell is gone.
fn wait_for(inner: u32, signals: &Signals) -> io::Result<()> {
    let inner = i32::try_from(inner).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let shell = stdin();
    let mut gone_since: Option<Instant> = None;
    loop {
        if signals.ended()?.iter().any(|(pid, _)| *pid == inner) {
            return Ok(());
        }
        let mut watched = vec![PollFd::new(signals, PollFlags::IN)];
        let mut time_left = None;
        match gone_since {
            None => watched.push(PollFd::new(&shell, PollFlags::empty())),
            Some(since) => time_left = Some(INNER_EXIT_WAIT.saturating_sub(since.elapsed())),
        }
        let timeout = time_left.map(|left| Timespec::try_from(left).unwrap_or_default());
        retry_on_intr(|| poll(&mut watched, timeout.as_ref()))?;
        let hung_up = watched.get(1).is_some_and(|shell| !shell.revents().is_empty());
        if hung_up {
            gone_since = Some(Instant::now());
        }
        if time_left.is_some_and(|left| left.is_zero()) {
            // Fails if it has just ended.
            let _ = kill_process(inner, Signal::KILL);
            gone_since = Some(Instant::now());
        }
    }
}

/// Kills every process that is left. Orphans have become children of this process.
fn kill_descendants(signals: &Signals) {
    let begun = Instant::now();
    while begun.elapsed() < CLEANUP_MAX {
        let left = ProcessList::take(Scope::Descendants(getpid()));
        if left.is_empty() {
            return;
        }
        left.signal_all(Signal::KILL);
        let timeout = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&timeout));
        let _ = signals.ended();
    }
}
