//! The processes of a worker, seen from the runner. Dropping it ends them; `close` waits until they
//! are gone.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_sandbox::Policy;
use tempfile::TempDir;
use tokio::process::{Child, ChildStderr};
use tokio::time::timeout;

use crate::kept_files::KeptFiles;
use crate::limits::WorkerLimits;
use crate::settings::SandboxRunnerSettings;
use crate::setup::{Exit, Purpose, SETUP, Setup};

/// How long the processes may take to be gone: some wait for a disk.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// The processes of a worker.
pub(super) struct Process {
    /// A copy of the socket, to shut it down while others hold it.
    socket: UnixStream,
    guard: Child,
    /// The guard removes it; this is for a guard that was killed.
    tmp: TempDir,
    kept: Option<KeptFiles>,
}

/// A worker that was just started.
pub(super) struct LaunchedWorker {
    pub(super) process: Process,
    pub(super) socket: tokio::net::UnixStream,
    pub(super) stderr: Option<ChildStderr>,
}

impl Process {
    /// Starts a worker.
    pub(super) fn launch(
        settings: &SandboxRunnerSettings,
        limits: &WorkerLimits,
        task_id: &TaskId,
    ) -> io::Result<LaunchedWorker> {
        let kept = KeptFiles::of(settings, task_id);
        let (ours, command, tmp) = prepare(settings, limits, Purpose::Work, kept.as_ref())?;
        if let Some(kept) = &kept {
            kept.restore(tmp.path())?;
        }
        let mut command = tokio::process::Command::from(command);
        let mut guard = command.stderr(Stdio::piped()).spawn()?;
        // Our copy of its end of the socket goes with it.
        drop(command);
        let stderr = guard.stderr.take();
        let socket = ours.try_clone()?;
        ours.set_nonblocking(true)?;
        let process = Self { socket, guard, tmp, kept };
        let socket = tokio::net::UnixStream::from_std(ours)?;
        Ok(LaunchedWorker { process, socket, stderr })
    }

    /// Ends the worker and all its processes, and waits until they are gone. Returns how it ended,
    /// if it ended by itself.
    pub(super) async fn close(mut self) -> Option<Exit> {
        self.disconnect();
        let ended = timeout(CLOSE_MAX, self.guard.wait()).await;
        if ended.is_err() {
            // The kernel ends the others with it.
            let _ = self.guard.kill().await;
        }
        if let Some(kept) = &self.kept {
            kept.save(self.tmp.path());
        }
        ended.ok()?.ok()?.code().and_then(Exit::of)
    }

    /// Closes the connection: the guard sees it and ends every process.
    fn disconnect(&self) {
        // Fails if it is closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.disconnect();
    }
}

/// A worker that is not started yet: the runner's end of its socket, its command, and its folder.
pub(super) fn prepare(
    settings: &SandboxRunnerSettings,
    limits: &WorkerLimits,
    purpose: Purpose,
    kept: Option<&KeptFiles>,
) -> io::Result<(UnixStream, Command, TempDir)> {
    let (ours, theirs) = UnixStream::pair()?;
    let tmp = tempfile::Builder::new().prefix("worker-").tempdir_in(&settings.policy.tmp)?;
    fs::create_dir(tmp.path().join(".cache"))?;
    let policy = Policy { tmp: tmp.path().to_owned(), ..settings.policy.clone() };
    let setup = Setup::Guard { purpose, policy, limits: *limits, kept: kept.cloned() };
    let mut command = Command::new(&settings.worker.program);
    command
        .args(&settings.worker.args)
        .env_clear()
        .envs(settings.environment.iter().map(|(name, value)| (name, value)))
        .envs(temp_variables())
        .env(SETUP, serde_json::to_string(&setup)?)
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null());
    Ok((ours, command, tmp))
}

/// Environment variables with the folders for temporary files and caches.
fn temp_variables() -> [(&'static str, PathBuf); 2] {
    [("TMPDIR", PathBuf::from("/tmp")), ("XDG_CACHE_HOME", Path::new("/tmp").join(".cache"))]
}
