//! Usage of the processes of a task: memory and disk.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use rustix::process::Pid;

use super::shared_memory::files_in_memory;

/// Free space below which a command that fills the disk is stopped, whatever its limit, in bytes.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Memory of these processes in bytes, if it is more than `most`. Pages that several processes share
/// count once.
pub(super) fn memory_above(pids: &[Pid], most: u64) -> Option<u64> {
    let resident: u64 = pids.iter().map(|pid| statm(*pid)).sum();
    let in_files = files_in_memory(pids);
    // The exact number takes time, so it is asked for only when it matters.
    if resident.saturating_add(in_files) <= most {
        return None;
    }
    let exact: u64 = pids.iter().map(|pid| memory(*pid)).sum();
    Some(exact.saturating_add(in_files)).filter(|used| *used > most)
}

/// Memory of one process in bytes.
pub(super) fn memory(pid: Pid) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kib = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().split(' ').next());
    match kib.and_then(|kib| kib.parse::<u64>().ok()) {
        Some(kib) => kib * 1024,
        // A process that lets no other look into it: what it shares counts too.
        None => statm(pid),
    }
}

/// Resident memory of a process in bytes.
fn statm(pid: Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    pages.saturating_mul(rustix::param::page_size() as u64)
}

/// Bytes that a process has written, with the processes it waited for.
pub(super) fn written(pid: Pid) -> u64 {
    written_of(&format!("/proc/{pid}/io"))
}

fn written_of(path: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    field("wchar:").max(field("write_bytes:"))
}

/// Watches how much free space commands take away.
#[derive(Debug)]
pub(super) struct DiskWatch {
    folders: Vec<PathBuf>,
    most: u64,
    /// Free space of each folder, and what this process had written, when the first command began.
    begun: Option<(Vec<u64>, u64)>,
}

impl DiskWatch {
    pub(super) fn new(folders: Vec<PathBuf>, most: u64) -> Self {
        Self { folders, most, begun: None }
    }

    /// Begins anew: no command runs yet.
    pub(super) fn begin(&mut self) {
        let free = self.folders.iter().map(|folder| free(folder)).collect();
        self.begun = Some((free, written_of("/proc/self/io")));
    }

    /// Whether these processes have taken away more space than they may.
    pub(super) fn is_exceeded(&mut self, pids: &[Pid]) -> bool {
        let Some((before, reaped_before)) = &self.begun else { return false };
        let taken = self.folders.iter().zip(before).map(|(folder, before)| {
            let free = free(folder);
            (before.saturating_sub(free), free)
        });
        let most = taken
            .filter(|(taken, free)| {
                *taken > self.most || *free < FREE_BYTES_MIN && *taken > FREE_BYTES_MIN / 4
            })
            .map(|(taken, _)| taken)
            .max();
        let Some(taken) = most else { return false };
        // What ended processes without a parent had written counts as ours.
        let reaped = written_of("/proc/self/io").saturating_sub(*reaped_before);
        let written = pids.iter().map(|pid| written(*pid)).fold(reaped, u64::saturating_add);
        if written >= taken / 2 {
            return true;
        }
        // Others have filled the disk.
        self.begin();
        false
    }
}

fn free(folder: &Path) -> u64 {
    statvfs(folder).map_or(u64::MAX, |about| about.f_bavail.saturating_mul(about.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_writes() {
        let pid = rustix::process::getpid();
        let held = vec![1_u8; 32 << 20];
        assert!(memory(pid) > 32 << 20);
        assert!(memory_above(&[pid], 16 << 20).is_some_and(|used| used > 32 << 20));
        assert_eq!(memory_above(&[pid], u64::MAX), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &held).unwrap();
        assert!(written(pid) >= 32 << 20);
    }
}
