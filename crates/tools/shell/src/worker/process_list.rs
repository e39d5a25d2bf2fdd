//! The running processes and the calls they belong to.
//!
//! A process belongs to the call named in its environment; without that, to the call of its process
//! group; otherwise to the call of its parent. A process with none of these is a *stray*: its call
//! is unknown, so it ends with the first call that is stopped.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::message::{CALL_VARIABLE, CallId};

/// Which processes to list.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// Every process of this PID namespace but the first.
    Namespace,
    /// Every descendant of this process, without the calling process.
    Descendants(Pid),
}

/// The processes at one moment, without zombies.
#[derive(Debug)]
pub(super) struct ProcessList(Vec<ProcessEntry>);

#[derive(Debug)]
struct ProcessEntry {
    pid: Pid,
    parent: i32,
    group: i32,
    call: Option<CallId>,
}

impl Scope {
    /// Sends SIGSTOP to the processes.
    pub(super) fn pause(self, leaders: &HashMap<Pid, CallId>) {
        match self {
            // Every process of the namespace but this one.
            Self::Namespace => {
                let all_processes = nix::unistd::Pid::from_raw(-1);
                let _ = nix::sys::signal::kill(all_processes, nix::sys::signal::Signal::SIGSTOP);
            }
            Self::Descendants(_) => {
                for leader in leaders.keys() {
                    let _ = kill_process_group(*leader, Signal::STOP);
                }
            }
        }
    }

    /// The processes, also those that have just ended.
    pub(super) fn pids(self) -> Vec<Pid> {
        match self {
            Self::Namespace => all().into_iter().filter(|pid| pid.as_raw_pid() != 1).collect(),
            Self::Descendants(of) => {
                let mut found = vec![of];
                let mut next = 0;
                while let Some(pid) = found.get(next).copied() {
                    found.extend(children(pid));
                    next += 1;
                }
                let ourselves = rustix::process::getpid();
                found.retain(|pid| *pid != of && *pid != ourselves);
                found
            }
        }
    }
}

impl ProcessList {
    pub(super) fn take(scope: Scope) -> Self {
        Self(scope.pids().into_iter().filter_map(ProcessEntry::read).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The processes of `call`, and the strays.
    pub(super) fn of(self, call: &CallId, leaders: &HashMap<Pid, CallId>) -> Self {
        let belongs: Vec<bool> = self
            .0
            .iter()
            .map(|entry| self.owner(entry, leaders).is_none_or(|owner| owner == call))
            .collect();
        let own = self.0.into_iter().zip(belongs).filter(|(_, belongs)| *belongs);
        Self(own.map(|(entry, _)| entry).collect())
    }

    /// The call whose processes have the most `weight`, not counting strays.
    pub(super) fn largest(
        &self,
        leaders: &HashMap<Pid, CallId>,
        weight: impl Fn(Pid) -> u64,
    ) -> Option<CallId> {
        let mut weights: HashMap<&CallId, u64> = HashMap::new();
        for entry in &self.0 {
            if let Some(owner) = self.owner(entry, leaders) {
                let sum = weights.entry(owner).or_default();
                *sum = sum.saturating_add(weight(entry.pid));
            }
        }
        let largest = weights.into_iter().max_by_key(|(_, weight)| *weight);
        largest.map(|(call, _)| call).or_else(|| leaders.values().next()).cloned()
    }

    /// Signals groups first, so that no process escapes by starting another one.
    pub(super) fn signal_all(&self, signal: Signal) {
        let ours = rustix::process::getpgrp().as_raw_pid();
        let groups: BTreeSet<i32> = self.0.iter().map(|entry| entry.group).collect();
        for group in groups.into_iter().filter(|group| *group > 1 && *group != ours) {
            if let Some(group) = Pid::from_raw(group) {
                // Fails if it has ended meanwhile.
                let _ = kill_process_group(group, signal);
            }
        }
        for entry in &self.0 {
            let _ = kill_process(entry.pid, signal);
        }
    }

    fn owner<'a>(
        &'a self,
        entry: &'a ProcessEntry,
        leaders: &'a HashMap<Pid, CallId>,
    ) -> Option<&'a CallId> {
        let mut entry = entry;
        // A chain of parents is not longer than the list.
        for _ in 0..=self.0.len() {
            let by_group = || leaders.get(&Pid::from_raw(entry.group)?);
            if let Some(owner) = entry.call.as_ref().or_else(by_group) {
                return Some(owner);
            }
            entry = self.0.iter().find(|other| other.pid.as_raw_pid() == entry.parent)?;
        }
        None
    }
}

impl ProcessEntry {
    /// `None` if the process has ended.
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The process name is in parentheses and may contain any character.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, group, call: call(pid) })
    }
}

fn call(pid: Pid) -> Option<CallId> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = |variable: &[u8]| {
        let value = variable.strip_prefix(CALL_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
        Some(CallId(String::from_utf8(value.to_owned()).ok()?))
    };
    variables.find_map(value)
}

fn all() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    entries.flatten().filter_map(pid).collect()
}

/// The children of all threads of a process.
fn children(of: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    match lists.collect::<Result<Vec<_>, _>>() {
        Ok(lists) => {
            let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace());
            pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
        }
        // A kernel without these lists: search all processes.
        Err(_) => {
            let entries = all().into_iter().filter_map(ProcessEntry::read);
            entries.filter(|it| it.parent == of.as_raw_pid()).map(|it| it.pid).collect()
        }
    }
}
