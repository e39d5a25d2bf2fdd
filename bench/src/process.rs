//! CPU time, memory and open files of a process.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::time::ClockId;
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::Error;

/// Raises the limit of open files to the maximum, for this process and its children.
pub fn raise_files() -> Result<u64, Error> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}

/// A measured process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    id: u32,
}

/// CPU time at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    at: Instant,
    cpu: Duration,
}

impl Process {
    /// The process with this id.
    pub fn new(id: u32) -> Self {
        Self { id }
    }

    /// This process.
    pub fn own() -> Self {
        Self::new(std::process::id())
    }

    /// CPU time so far.
    pub fn usage(self) -> Result<Usage, Error> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(self.id)?))?;
        Ok(Usage { at: Instant::now(), cpu: Duration::from(clock.now()?) })
    }

    /// CPU time so far, with that of child processes that have ended and of theirs. It is counted in ticks.
    pub fn usage_with_children(self) -> Result<Duration, Error> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id))?;
        // After the name, which may contain anything: fields 12 to 15 are ticks.
        let (_, fields) = stat.rsplit_once(')').ok_or("that is no process")?;
        let fields = fields.split_whitespace().skip(11).take(4);
        let ticks: u64 = fields.map(str::parse::<u64>).sum::<Result<_, _>>()?;
        let per_second = sysconf(SysconfVar::CLK_TCK)?.ok_or("the system has no clock")?;
        Ok(Duration::from_millis(ticks * 1000 / u64::try_from(per_second)?.max(1)))
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(self) -> Result<u64, Error> {
        self.kib("VmRSS:")
    }

    /// The most resident memory that it had, in KiB.
    pub fn peak_kib(self) -> Result<u64, Error> {
        self.kib("VmHWM:")
    }

    fn kib(self, name: &str) -> Result<u64, Error> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let line = line.ok_or_else(|| format!("the system does not tell {name}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// Number of open files and sockets.
    pub fn files(self) -> Result<usize, Error> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.id))?.count())
    }

    /// Child processes and their descendants.
    pub fn descendants(self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut ahead = vec![self.id];
        while let Some(id) = ahead.pop() {
            for task in fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                let children = children.split_whitespace().filter_map(|id| id.parse::<u32>().ok());
                ahead.extend(children.clone());
                found.extend(children);
            }
        }
        found
    }
}

impl Usage {
    /// CPU time since the start of the process.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// CPU time since `before`.
    pub fn cpu_since(&self, before: &Self) -> Duration {
        self.cpu.saturating_sub(before.cpu)
    }

    /// Share of one core since `before`: 1.0 is all of it.
    pub fn cores_since(&self, before: &Self) -> f64 {
        let wall = self.at.duration_since(before.at).as_secs_f64();
        self.cpu_since(before).as_secs_f64() / wall.max(f64::EPSILON)
    }
}
