//! Resource limits of commands.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

use crate::sandbox_error::Step;
use crate::{Limits, SandboxError};

/// Most processes and threads in one sandbox, plus [`TASKS_PER_CORE_MAX`] for each core of the
/// machine. Further ones are refused.
const TASKS_MAX: u64 = 1024;

const TASKS_PER_CORE_MAX: u64 = 64;

/// Most open files of one process.
const OPEN_FILES_MAX: u64 = 16_384;

/// Most shared memory of System V in one sandbox, in bytes: as much as `/dev/shm` holds.
const SHARED_MEMORY_MAX: u64 = 512 << 20;

const SHARED_MEMORY: &str = "/proc/sys/kernel/shmall";

/// Turns off core dumps and limits open files.
pub(crate) fn files_and_dumps() -> Result<(), SandboxError> {
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, OPEN_FILES_MAX)
}

/// Sets all limits. Must be called within the user namespace, where tasks are counted separately.
pub(crate) fn all(limits: &Limits) -> Result<(), SandboxError> {
    files_and_dumps()?;
    // Root is exempt from this limit; the PID namespace has the same limit.
    lower(Resource::Nproc, tasks_max())?;
    // A file of the memory counts as a file.
    lower(Resource::Fsize, limits.disk_bytes())?;
    limits.process_bytes_max.map_or(Ok(()), |bytes_max| lower(Resource::As, bytes_max))
}

/// Limits the tasks of this PID namespace. Applies to root too.
pub(crate) fn namespace_tasks() {
    // In older kernels the file belongs to the whole machine, and root could change it.
    if release(uname().release().to_bytes()) >= Some((6, 14)) {
        // If it fails, the other limit remains.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", tasks_max().to_string());
    }
}

/// Limits the shared memory of System V of this IPC namespace: it outlives its processes, so what
/// limits these does not cover it.
pub(crate) fn namespace_shared_memory() {
    // Older kernels do not let the namespace change it; see `shared_memory_is_limited`.
    let _ = std::fs::write(SHARED_MEMORY, shared_memory_pages().to_string());
}

/// Whether shared memory of System V is limited here.
pub(crate) fn shared_memory_is_limited() -> bool {
    let pages = std::fs::read_to_string(SHARED_MEMORY).ok();
    let pages = pages.and_then(|text| text.trim().parse::<u64>().ok());
    pages.is_some_and(|pages| pages <= shared_memory_pages())
}

fn shared_memory_pages() -> u64 {
    SHARED_MEMORY_MAX / rustix::param::page_size() as u64
}

/// The first two numbers of a kernel's release, such as `6.12.9-arch1`.
fn release(text: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn tasks_max() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    TASKS_MAX + TASKS_PER_CORE_MAX * cores
}

fn lower(resource: Resource, most: u64) -> Result<(), SandboxError> {
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
        .during(format!("limit {resource:?} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(release(b"6.12.9-arch1"), Some((6, 12)));
        assert_eq!(release(b"5.15.167.4-microsoft-standard-WSL2"), Some((5, 15)));
        assert_eq!(release(b"7.0-rc1"), Some((7, 0)));
        assert_eq!(release(b"unknown"), None);
        assert!(release(b"6.9.0") < Some((6, 14)) && None < Some((6, 14)));
    }
}
