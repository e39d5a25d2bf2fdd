//! The processes below a process, or with a task variable, at one moment. Zombies do not count.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, getuid, kill_process, kill_process_group};

/// The environment variable that every process of a terminal has, unless the process removes it:
/// the id of its task.
pub(crate) const TASK_VARIABLE: &str = "ANTIPHON_TASK";

/// How long killed processes may take to end: some wait for a disk.
pub(crate) const KILL_WAIT_MAX: Duration = Duration::from_secs(5);

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Some processes at one moment.
#[derive(Debug)]
pub(crate) struct ProcessList(Vec<ProcessEntry>);

#[derive(Debug, Clone, Copy)]
struct ProcessEntry {
    pid: Pid,
    parent: i32,
    group: i32,
}

impl ProcessList {
    /// Every process below this process.
    pub(super) fn descendants() -> Self {
        let mut children: HashMap<i32, Vec<ProcessEntry>> = HashMap::new();
        for entry in own_processes() {
            children.entry(entry.parent).or_default().push(entry);
        }
        let mut found = Vec::new();
        let mut next = vec![getpid().as_raw_pid()];
        while let Some(parent) = next.pop() {
            for entry in children.remove(&parent).unwrap_or_default() {
                next.push(entry.pid.as_raw_pid());
                found.push(entry);
            }
        }
        Self(found)
    }

    /// Every process of this user with this variable value.
    fn with_task(task: &str) -> Self {
        let wanted = format!("{TASK_VARIABLE}={task}");
        let bears = |entry: &ProcessEntry| {
            let environment = fs::read(format!("/proc/{}/environ", entry.pid));
            let environment = environment.unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let is_another = |entry: &ProcessEntry| entry.pid != getpid();
        Self(own_processes().filter(is_another).filter(bears).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Signals groups first, so that no process escapes by starting another one.
    pub(super) fn signal_all(&self, signal: Signal) {
        let ours = rustix::process::getpgrp().as_raw_pid();
        let groups: BTreeSet<i32> = self.0.iter().map(|entry| entry.group).collect();
        let entries: BTreeSet<i32> = self.0.iter().map(|entry| entry.pid.as_raw_pid()).collect();
        // A group whose leader is not in the list may contain other processes.
        for group in groups.into_iter().filter(|group| *group != ours && entries.contains(group)) {
            if let Some(group) = Pid::from_raw(group) {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, signal);
            }
        }
        for entry in &self.0 {
            let _ = kill_process(entry.pid, signal);
        }
    }

    /// Pauses the processes first, so that none can start others faster than they are listed.
    pub(super) fn kill(take: impl Fn() -> Self) {
        take().signal_all(Signal::STOP);
        take().signal_all(Signal::KILL);
    }
}

/// Ends every remaining process with this variable value. Blocks.
pub(crate) fn end_processes_of(task: &str) {
    let begun = Instant::now();
    while !ProcessList::with_task(task).is_empty() && begun.elapsed() < KILL_WAIT_MAX {
        ProcessList::kill(|| ProcessList::with_task(task));
        std::thread::sleep(CHECK_INTERVAL);
    }
}

fn own_processes() -> impl Iterator<Item = ProcessEntry> {
    use std::os::unix::fs::MetadataExt;
    let us = getuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        // Processes of other users cannot be ended, except by root.
        if us != 0 && entry.metadata().ok()?.uid() != us {
            return None;
        }
        ProcessEntry::read(pid)
    })
}

impl ProcessEntry {
    /// `None` if it has ended.
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name may contain anything, and stands in parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, group })
    }
}
