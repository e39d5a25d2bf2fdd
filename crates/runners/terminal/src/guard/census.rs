//! Who runs below a process, or bears a mark, at one moment. Those that have ended and are only
//! waited for do not count.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, getuid, kill_process, kill_process_group};

/// The variable that every process of a terminal has, unless it takes it away: the id of its task.
pub(crate) const MARK: &str = "ANTIPHON_TASK";

/// How long processes that are killed may take to be gone: some wait for a disk.
pub(crate) const KILLING_MAX: Duration = Duration::from_secs(5);

/// How often it is looked whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Some processes at one moment.
#[derive(Debug)]
pub(crate) struct Census(Vec<Member>);

#[derive(Debug, Clone, Copy)]
struct Member {
    pid: Pid,
    parent: i32,
    group: i32,
}

impl Census {
    /// Everybody below this process.
    pub(super) fn descendants() -> Self {
        let mut children: HashMap<i32, Vec<Member>> = HashMap::new();
        for member in everybody() {
            children.entry(member.parent).or_default().push(member);
        }
        let mut found = Vec::new();
        let mut next = vec![getpid().as_raw_pid()];
        while let Some(parent) = next.pop() {
            for member in children.remove(&parent).unwrap_or_default() {
                next.push(member.pid.as_raw_pid());
                found.push(member);
            }
        }
        Self(found)
    }

    /// Everybody of ours who bears this mark.
    fn marked(mark: &str) -> Self {
        let wanted = format!("{MARK}={mark}");
        let bears = |member: &Member| {
            let environment = fs::read(format!("/proc/{}/environ", member.pid));
            let environment = environment.unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        let is_another = |member: &Member| member.pid != getpid();
        Self(everybody().filter(is_another).filter(bears).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Groups first: nobody escapes from one by starting another process meanwhile.
    pub(super) fn signal_all(&self, signal: Signal) {
        let ours = rustix::process::getpgrp().as_raw_pid();
        let groups: BTreeSet<i32> = self.0.iter().map(|member| member.group).collect();
        let members: BTreeSet<i32> = self.0.iter().map(|member| member.pid.as_raw_pid()).collect();
        // A group whose leader is none of them may have others in it.
        for group in groups.into_iter().filter(|group| *group != ours && members.contains(group)) {
            if let Some(group) = Pid::from_raw(group) {
                // It may have ended meanwhile.
                let _ = kill_process_group(group, signal);
            }
        }
        for member in &self.0 {
            let _ = kill_process(member.pid, signal);
        }
    }

    /// Halted first: those who start others faster than they can be counted are caught.
    pub(super) fn kill(take: impl Fn() -> Self) {
        take().signal_all(Signal::STOP);
        take().signal_all(Signal::KILL);
    }
}

/// Ends everybody who bears this mark and is left over from before. Blocks.
pub(crate) fn end_marked(mark: &str) {
    let begun = Instant::now();
    while !Census::marked(mark).is_empty() && begun.elapsed() < KILLING_MAX {
        Census::kill(|| Census::marked(mark));
        std::thread::sleep(LOOK_EVERY);
    }
}

fn everybody() -> impl Iterator<Item = Member> {
    use std::os::unix::fs::MetadataExt;
    let us = getuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        // Somebody else's cannot be ended by us, unless we are everybody.
        if us != 0 && entry.metadata().ok()?.uid() != us {
            return None;
        }
        Member::look(pid)
    })
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
        Some(Self { pid, parent, group })
    }
}
