//! Who runs, and which call it belongs to.
//!
//! A process belongs to the call whose mark is in its environment; without a mark, to the call
//! whose group it is in; otherwise to whom its parent belongs. One that shook all of it off is a
//! *stray*: nobody can say whose it is, so it ends with whatever call is stopped first.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::message::{CallId, MARK};

/// Where to look for processes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// All that are seen, but the first one: this is a namespace of our own.
    Namespace,
    /// Those that this process or its descendants started, but not ourselves.
    Descendants(Pid),
}

/// All processes at one moment. Those that have ended and are only waited for do not count.
#[derive(Debug)]
pub(super) struct Census(Vec<Member>);

#[derive(Debug)]
struct Member {
    pid: Pid,
    parent: i32,
    group: i32,
    mark: Option<CallId>,
}

impl Scope {
    /// How many there are.
    pub(super) fn count(self) -> usize {
        self.pids().len()
    }

    /// Stops everybody for the moment, as far as that can be done at once.
    pub(super) fn halt(self, leaders: &HashMap<Pid, CallId>) {
        match self {
            // Everybody in the namespace but us.
            Self::Namespace => {
                let everybody = nix::unistd::Pid::from_raw(-1);
                let _ = nix::sys::signal::kill(everybody, nix::sys::signal::Signal::SIGSTOP);
            }
            Self::Descendants(_) => {
                for leader in leaders.keys() {
                    let _ = kill_process_group(*leader, Signal::STOP);
                }
            }
        }
    }

    fn pids(self) -> Vec<Pid> {
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

impl Census {
    pub(super) fn take(scope: Scope) -> Self {
        Self(scope.pids().into_iter().filter_map(Member::look).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those that belong to `call`, and the strays.
    pub(super) fn of(self, call: &CallId, leaders: &HashMap<Pid, CallId>) -> Self {
        let belongs: Vec<bool> = self
            .0
            .iter()
            .map(|member| self.owner(member, leaders).is_none_or(|owner| owner == call))
            .collect();
        let kept = self.0.into_iter().zip(belongs).filter(|(_, belongs)| *belongs);
        Self(kept.map(|(member, _)| member).collect())
    }

    /// The call that has the most processes, strays counting for whoever has the most otherwise.
    pub(super) fn largest(&self, leaders: &HashMap<Pid, CallId>) -> Option<CallId> {
        let mut counts: HashMap<&CallId, usize> = HashMap::new();
        for owner in self.0.iter().filter_map(|member| self.owner(member, leaders)) {
            *counts.entry(owner).or_default() += 1;
        }
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        largest.map(|(call, _)| call).or_else(|| leaders.values().next()).cloned()
    }

    /// Groups first: nobody escapes from one by starting another process meanwhile.
    pub(super) fn signal_all(&self, signal: Signal) {
        let ours = rustix::process::getpgrp().as_raw_pid();
        let groups: BTreeSet<i32> = self.0.iter().map(|member| member.group).collect();
        for group in groups.into_iter().filter(|group| *group > 1 && *group != ours) {
            if let Some(group) = Pid::from_raw(group) {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, signal);
            }
        }
        for member in &self.0 {
            let _ = kill_process(member.pid, signal);
        }
    }

    fn owner<'a>(
        &'a self,
        member: &'a Member,
        leaders: &'a HashMap<Pid, CallId>,
    ) -> Option<&'a CallId> {
        let mut member = member;
        // A chain of parents is no longer than there are processes.
        for _ in 0..=self.0.len() {
            let by_group = || leaders.get(&Pid::from_raw(member.group)?);
            if let Some(owner) = member.mark.as_ref().or_else(by_group) {
                return Some(owner);
            }
            member = self.0.iter().find(|other| other.pid.as_raw_pid() == member.parent)?;
        }
        None
    }
}

impl Member {
    /// `None` if it has ended.
    fn look(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Its name may contain anything, and stands in parentheses.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, group, mark: mark(pid) })
    }
}

fn mark(pid: Pid) -> Option<CallId> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = |variable: &[u8]| {
        let value = variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        Some(CallId(String::from_utf8(value.to_owned()).ok()?))
    };
    variables.find_map(value)
}

fn all() -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    entries.flatten().filter_map(pid).collect()
}

/// Each thread has its own children.
fn children(of: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    match lists.collect::<Result<Vec<_>, _>>() {
        Ok(lists) => {
            let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace());
            pids.filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
        }
        // A kernel without these lists: look at everybody.
        Err(_) => {
            let members = all().into_iter().filter_map(Member::look);
            members.filter(|it| it.parent == of.as_raw_pid()).map(|it| it.pid).collect()
        }
    }
}
