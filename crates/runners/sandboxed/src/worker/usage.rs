//! The resources that all processes inside use at one moment.

use std::fs;

use rustix::param::clock_ticks_per_second;

use crate::limits::WorkerLimits;
use crate::setup::Exit;

/// The resources that all processes inside use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ResourceUsage {
    processes: u64,
    /// Resident memory that is not backed by a file on a disk.
    memory_kb: u64,
    /// CPU time, including that of children that were waited for.
    ticks: u64,
}

impl ResourceUsage {
    pub(super) fn take() -> Self {
        let mut usage = Self::default();
        let Ok(entries) = fs::read_dir("/proc") else { return usage };
        let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().filter(|name| is_process(name)) else { continue };
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            let Some(ticks) = stat.ok().and_then(|stat| ticks(&stat)) else { continue };
            usage.processes += 1;
            usage.ticks = usage.ticks.saturating_add(ticks);
            let memory_kb = status.map(|status| memory_kb(&status)).unwrap_or_default();
            usage.memory_kb = usage.memory_kb.saturating_add(memory_kb);
        }
        usage
    }

    /// The limit that is exceeded.
    pub(super) fn over(&self, limits: &WorkerLimits) -> Option<Exit> {
        let cpu_ticks_max = limits.cpu_s_max.saturating_mul(clock_ticks_per_second());
        if self.memory_kb.saturating_mul(1024) > limits.memory_bytes_max {
            Some(Exit::Memory)
        } else if self.ticks > cpu_ticks_max {
            Some(Exit::Cpu)
        } else if self.processes > limits.processes_max {
            Some(Exit::Processes)
        } else {
            None
        }
    }
}

/// Time in user and kernel mode, of the process and of its children that were waited for.
fn ticks(stat: &str) -> Option<u64> {
    // Its name may contain anything, and stands in parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    // The first field behind the name is the third of all.
    let times = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    times.sum()
}

/// What is resident and was made by programs: their own memory, and what they share with each other.
fn memory_kb(status: &str) -> u64 {
    let kb = |line: &str| {
        let value = line.strip_prefix("RssAnon:").or_else(|| line.strip_prefix("RssShmem:"))?;
        value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    status.lines().filter_map(kb).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_an_odd_name_is_read_right() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 9 0 0 0 11 22 33 44 20 0 1 0 5 0 0";
        assert_eq!(ticks(stat), Some(110));
        assert_eq!(ticks("7 (a"), None);
        let status = "Name:\tx\nVmRSS:\t  900 kB\nRssAnon:\t  300 kB\nRssFile:\t  500 kB\nRssShmem:\t  100 kB\n";
        assert_eq!(memory_kb(status), 400);
    }

    #[test]
    fn each_limit_is_looked_at() {
        let limits = WorkerLimits { processes_max: 2, cpu_s_max: 1, ..WorkerLimits::default() };
        let fine = ResourceUsage { processes: 2, memory_kb: 1, ticks: 1 };
        assert_eq!(fine.over(&limits), None);
        assert_eq!(ResourceUsage { processes: 3, ..fine }.over(&limits), Some(Exit::Processes));
        assert_eq!(ResourceUsage { ticks: u64::MAX, ..fine }.over(&limits), Some(Exit::Cpu));
        assert_eq!(ResourceUsage { memory_kb: u64::MAX, ..fine }.over(&limits), Some(Exit::Memory));
    }
}
