//! The working process. It takes the socket, protects its memory from the tools it will run, limits
//! itself, and connects.

use std::fs::File;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use antiphon_core::port::RunnerError;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use rustix::stdio::dup2_stdin;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::link::Link;
use super::ports::WorkerPorts;
use super::stdin_socket;
use crate::limits::WorkerLimits;
use crate::setup::Exit;

/// How long the runner may take to receive the end of the work.
const END_WAIT_MAX: Duration = Duration::from_secs(10);

pub(super) fn run(
    limits: &WorkerLimits,
    work: impl AsyncFnOnce(WorkerPorts) -> Result<(), RunnerError>,
) -> io::Result<ExitCode> {
    // No process inside may inspect this process, whose socket leads outside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // A tool that inherits standard input finds it empty.
    let socket = stdin_socket()?;
    dup2_stdin(File::open("/dev/null")?)?;
    let memory_bytes_max = limits.memory_bytes_max.saturating_mul(2);
    lower(Resource::Nofile, limits.open_files_max, limits.open_files_max)?;
    lower(Resource::Data, memory_bytes_max, memory_bytes_max)?;
    // SIGXCPU a second before SIGKILL, so that its end shows the reason.
    lower(Resource::Cpu, limits.cpu_s_max, limits.cpu_s_max.saturating_add(1))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(connect(socket, work));
    // A tool that does not end must not delay the end of the process.
    runtime.shutdown_background();
    Ok(ExitCode::from(exit?.code()))
}

async fn connect(
    socket: std::os::unix::net::UnixStream,
    work: impl AsyncFnOnce(WorkerPorts) -> Result<(), RunnerError>,
) -> io::Result<Exit> {
    socket.set_nonblocking(true)?;
    let socket = tokio::net::UnixStream::from_std(socket)?;
    let mut keepers = JoinSet::new();
    let (link, hello) = Link::open(socket, &mut keepers).await?;
    let ports = WorkerPorts::new(hello, &link);
    tokio::select! {
        outcome = work(ports) => {
            link.done(outcome).await;
            // The runner closes the socket when it has received the message.
            let _ = timeout(END_WAIT_MAX, link.gone()).await;
            Ok(Exit::Over)
        }
        () = link.gone() => Ok(Exit::Broken),
    }
}

/// Lowers a limit, never raises it.
fn lower(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = Rlimit { current: Some(soft.min(most)), maximum: Some(hard.min(most)) };
    Ok(setrlimit(resource, limit)?)
}
