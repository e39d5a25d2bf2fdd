//! Memory that no process has in its own pages: files without a name, and shared memory whose pages
//! were given up or whose process lets no other look into it. The kernel counts it for the whole
//! machine only, so growth counts as that of the commands if they hold at least half of it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::process::Pid;

/// Most descriptors of one process that are looked at: as many as a process in the sandbox can have.
const DESCRIPTORS_MAX: usize = 16_384;

/// Watches how much shared memory commands take.
#[derive(Debug)]
pub(super) struct SharedMemoryWatch {
    most: u64,
    /// Shared memory of the machine when the first command began.
    before: Option<u64>,
}

impl SharedMemoryWatch {
    pub(super) fn new(most: u64) -> Self {
        Self { most, before: None }
    }

    /// Begins anew: no command runs yet.
    pub(super) fn begin(&mut self) {
        self.before = of_machine();
    }

    /// Whether these processes hold more than they may.
    pub(super) fn is_exceeded(&mut self, pids: &[Pid]) -> bool {
        let (Some(before), Some(now)) = (self.before, of_machine()) else { return false };
        let grown = now.saturating_sub(before);
        if grown <= self.most {
            return false;
        }
        if held_by(pids).is_none_or(|held| held >= grown / 2) {
            return true;
        }
        // Others have taken it.
        self.begin();
        false
    }
}

/// Shared memory that a process is seen to hold, in bytes.
pub(super) fn held(pid: Pid) -> u64 {
    held_by(&[pid]).unwrap_or(0)
}

/// Bytes of files without a name in memory. No process needs to have mapped them.
pub(super) fn files_in_memory(pids: &[Pid]) -> u64 {
    pids.iter()
        .filter_map(|pid| files(*pid))
        .flatten()
        .collect::<HashSet<_>>()
        .iter()
        .map(File::bytes)
        .sum()
}

/// `None` if one of the processes cannot be looked into.
fn held_by(pids: &[Pid]) -> Option<u64> {
    let mut all = HashSet::new();
    for pid in pids {
        all.extend(files(*pid)?);
        all.extend(mapped(*pid)?);
    }
    Some(all.iter().map(File::bytes).fold(0, u64::saturating_add))
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum File {
    Open { device: u64, inode: u64, bytes: u64 },
    Mapped { inode: String, bytes: u64 },
}

impl File {
    fn bytes(&self) -> u64 {
        let (Self::Open { bytes, .. } | Self::Mapped { bytes, .. }) = self;
        *bytes
    }
}

/// The open files without a name.
fn files(pid: Pid) -> Option<Vec<File>> {
    let descriptors = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(descriptors) => descriptors,
        Err(error) => return may_be_ignored(&error).then(Vec::new),
    };
    let mut files = Vec::new();
    for descriptor in descriptors.flatten().take(DESCRIPTORS_MAX) {
        let path = descriptor.path();
        let is_file = |to: PathBuf| to.as_os_str().as_encoded_bytes().starts_with(b"/memfd:");
        if fs::read_link(&path).is_ok_and(is_file)
            && let Ok(found) = fs::metadata(&path)
        {
            let (device, inode, bytes) = (found.dev(), found.ino(), found.blocks() * 512);
            files.push(File::Open { device, inode, bytes });
        }
    }
    Some(files)
}

/// Shared memory that is mapped, whether or not its pages are in the tables of the process.
fn mapped(pid: Pid) -> Option<Vec<File>> {
    let maps = match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps,
        Err(error) => return may_be_ignored(&error).then(Vec::new),
    };
    Some(String::from_utf8_lossy(&maps).lines().filter_map(mapping).collect())
}

/// A line such as `7f00-7f10 rw-s 00000000 00:01 2049    /dev/zero (deleted)`.
fn mapping(line: &str) -> Option<File> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let (inode, name) = (fields.nth(3)?, fields.next()?);
    let in_memory = ["/memfd:", "/dev/zero", "/SYSV"].iter().any(|start| name.starts_with(start));
    let address = |text| u64::from_str_radix(text, 16).ok();
    let bytes = address(to)?.saturating_sub(address(from)?);
    in_memory.then(|| File::Mapped { inode: inode.to_owned(), bytes })
}

/// Whether the process has ended meanwhile.
fn may_be_ignored(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

fn of_machine() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Shmem:")?.trim().split(' ').next());
    kib?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_memory_counts_though_no_process_has_mapped_it() {
        let file = rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::empty()).unwrap();
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 8 << 20).unwrap();
        assert!(files_in_memory(&[rustix::process::getpid()]) >= 8 << 20);
    }

    #[test]
    fn shared_mappings_are_recognized() {
        let line = "7f0000000000-7f0000100000 rw-s 00000000 00:01 2049       /dev/zero (deleted)";
        assert_eq!(mapping(line).map(|file| file.bytes()), Some(1 << 20));
        // A private mapping keeps the file as well.
        let line = "7f0000000000-7f0000100000 rw-p 00000000 00:01 2049       /memfd:x (deleted)";
        assert!(mapping(line).is_some());
        for other in [
            "7f0000000000-7f0000100000 rw-p 00000000 00:00 0",
            "7f0000000000-7f0000100000 r--s 00000000 fe:00 12         /usr/lib/locale/archive",
        ] {
            assert_eq!(mapping(other), None, "{other}");
        }
    }
}
