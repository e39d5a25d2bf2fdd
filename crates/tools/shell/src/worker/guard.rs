//! The first process of a worker. It is never restricted and runs nothing but the second one: it
//! outlives everything, and clears up.

use std::fs;
use std::io::{self, stdin};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use antiphon_sandbox::Mode;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, getpid, kill_process, setsid};

use super::census::{Census, Scope};
use super::signals::Signals;
use crate::message::{SETUP, Setup, Stage};

/// How long the one inside may take to end after the shell has gone.
const FAREWELL: Duration = Duration::from_secs(1);

/// How long processes that are killed may take to be gone: some wait for a disk.
const CLEARING_MAX: Duration = Duration::from_secs(5);

pub(super) fn run(setup: &Setup) -> io::Result<()> {
    close_inherited()?;
    // Out of the terminal's reach. Fails only for who leads a group already.
    let _ = setsid();
    let inside = Setup { stage: Stage::Inside, ..setup.clone() };
    let mut command = Command::new("/proc/self/exe");
    command
        .args(std::env::args_os().skip(1))
        .env(SETUP, serde_json::to_string(&inside)?)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let confined = setup.policy.confine(&mut command).map_err(io::Error::other);
    let confined = confined.inspect_err(|_| remove(&setup.policy.tmp))?;
    let signals = Signals::watch()?;
    let waited = wait_for(confined.child.id(), &signals);
    match setup.policy.mode {
        Mode::Full => clear(&signals),
        // The kernel has done it.
        Mode::ReadOnly | Mode::Workspace => {}
    }
    remove(&setup.policy.tmp);
    drop(confined);
    waited
}

/// Whatever else the shell has open is no business of ours, and of what we start.
fn close_inherited() -> io::Result<()> {
    let open: Vec<i32> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // One of them was the list itself, and is closed by now.
        let _ = nix::unistd::close(fd);
    }
    Ok(())
}

/// Waits until the one inside has ended, and sees to it that it does once the shell is gone.
fn wait_for(inside: u32, signals: &Signals) -> io::Result<()> {
    let inside =
        i32::try_from(inside).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let shell = stdin();
    let mut gone_since: Option<Instant> = None;
    loop {
        if signals.ended()?.iter().any(|(pid, _)| *pid == inside) {
            return Ok(());
        }
        let mut watched = vec![PollFd::new(signals, PollFlags::IN)];
        let mut patience = None;
        match gone_since {
            None => watched.push(PollFd::new(&shell, PollFlags::empty())),
            Some(since) => patience = Some(FAREWELL.saturating_sub(since.elapsed())),
        }
        let timeout = patience.map(|left| Timespec::try_from(left).unwrap_or_default());
        retry_on_intr(|| poll(&mut watched, timeout.as_ref()))?;
        let hung_up = watched.get(1).is_some_and(|shell| !shell.revents().is_empty());
        if hung_up {
            gone_since = Some(Instant::now());
        }
        if patience.is_some_and(|left| left.is_zero()) {
            // It may be stopped, or have ended this moment.
            let _ = kill_process(inside, Signal::KILL);
            gone_since = Some(Instant::now());
        }
    }
}

/// Ends everything that was started and is still there: it has become ours.
fn clear(signals: &Signals) {
    let begun = Instant::now();
    while begun.elapsed() < CLEARING_MAX {
        let left = Census::take(Scope::Descendants(getpid()));
        if left.is_empty() {
            return;
        }
        left.signal_all(Signal::KILL);
        let timeout = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&timeout));
        let _ = signals.ended();
    }
}

/// Takes a folder away, also what somebody made read-only in it.
fn remove(folder: &Path) {
    if fs::remove_dir_all(folder).is_err() {
        unlock(folder);
        // What cannot be removed now is left to whoever owns the folder above.
        let _ = fs::remove_dir_all(folder);
    }
}

fn unlock(folder: &Path) {
    let _ = fs::set_permissions(folder, PermissionsExt::from_mode(0o700));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}
