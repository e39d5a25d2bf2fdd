//! How much of the machine commands may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::uname;

use crate::sandbox_error::Step;
use crate::{Limits, SandboxError};

/// Processes and threads in one sandbox, and as many again as [`TASKS_PER_CORE_MAX`] says for each
/// core of the machine. The next one is refused.
const TASKS_MAX: u64 = 1024;

const TASKS_PER_CORE_MAX: u64 = 64;

/// Open files of one process.
const OPEN_FILES_MAX: u64 = 16_384;

/// No core dumps, and a sane number of open files.
pub(crate) fn files_and_dumps() -> Result<(), SandboxError> {
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, OPEN_FILES_MAX)
}

/// All of them. To be set within the user namespace: there, tasks are counted by themselves.
pub(crate) fn all(limits: &Limits) -> Result<(), SandboxError> {
    files_and_dumps()?;
    // The kernel exempts root from this one; the process namespace has the same limit.
    lower(Resource::Nproc, tasks_max())?;
    limits.process_bytes_max.map_or(Ok(()), |bytes_max| lower(Resource::As, bytes_max))
}

/// The most there can be in this process namespace. It counts for root as well.
pub(crate) fn namespace_tasks() {
    // Before, the file is the whole machine's, and root could write it.
    if release(uname().release().to_bytes()) >= Some((6, 14)) {
        // Without it the other limit remains.
        let _ = std::fs::write("/proc/sys/kernel/pid_max", tasks_max().to_string());
    }
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
