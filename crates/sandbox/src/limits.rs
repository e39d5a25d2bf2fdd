//! How much of the machine commands may take.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// The most there can be in this process namespace. Kernels before 6.14 have no such limit of its
/// own, and refuse.
pub(crate) fn namespace_tasks() -> bool {
    std::fs::write("/proc/sys/kernel/pid_max", tasks_max().to_string()).is_ok()
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
