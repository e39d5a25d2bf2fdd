//! The shell's end of a worker.
//!
//! One future supervises the worker: it dispatches the worker's replies, and when the worker ends
//! it marks every running command as lost. Dropping a [`WorkerLink`] closes the socket, and the
//! worker ends by itself.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_sandbox::{Policy, SandboxMode};
use rustix::io::ioctl_fionbio;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use tempfile::TempDir;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::message::{CallId, Reply, Request, SETUP, Setup, WorkerRole, packet, receive, send};
use crate::process::{End, Process, lock};
use crate::settings::ShellSettings;

/// How long a worker may take to start.
const START_MAX: Duration = Duration::from_secs(20);

/// How long a worker may take to end.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// Longest message of a worker, in bytes. A longer one is cut and cannot be parsed.
const REPLY_BYTES_MAX: usize = 16 * 1024;

type Calls = Arc<Mutex<HashMap<CallId, Arc<Process>>>>;

/// The shell's end of a worker.
pub(crate) struct WorkerLink {
    socket: Arc<UnixStream>,
    calls: Calls,
    state: watch::Sender<WorkerState>,
    worker: Option<u32>,
    _supervisor: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Running,
    /// It accepts no more requests.
    Ending,
    /// The worker and all its processes have ended.
    Gone,
}

impl WorkerLink {
    /// Starts a worker and waits until it is ready. The error is a text for the user.
    pub(crate) async fn start(
        settings: &ShellSettings,
        policy: Policy,
        variables: Vec<(String, String)>,
    ) -> Result<Arc<Self>, String> {
        let launched = launch(settings, policy, variables).map_err(|error| {
            format!("its worker `{}` cannot be started: {error}", settings.worker.program.display())
        })?;
        let LaunchedWorker { socket, child, tmp } = launched;
        let socket = Arc::new(socket);
        let mut buffer = vec![0; REPLY_BYTES_MAX];
        match timeout(START_MAX, next(&socket, &mut buffer)).await {
            Ok(Some((Reply::Ready, _))) => {}
            Ok(Some((Reply::Refused { reason }, _))) => return Err(reason),
            Ok(_) => return Err("its worker ended before it was ready".to_owned()),
            Err(_) => return Err(format!("its worker was not ready after {START_MAX:?}")),
        }
        // From now on the worker removes it.
        let _ = tmp.keep();
        let (calls, state, worker) =
            (Calls::default(), watch::Sender::new(WorkerState::Running), child.id());
        let mut supervisor = JoinSet::new();
        supervisor.spawn(supervise(Arc::clone(&socket), Arc::clone(&calls), state.clone(), child));
        Ok(Arc::new(Self { socket, calls, state, worker, _supervisor: supervisor }))
    }

    /// Whether the worker accepts requests.
    pub(crate) fn is_running(&self) -> bool {
        *self.state.borrow() == WorkerState::Running
    }

    /// Passes later replies about this call to `process`.
    pub(crate) fn register(&self, process: &Arc<Process>) {
        lock(&self.calls).insert(process.id.clone(), Arc::clone(process));
        // The worker may have ended before the registration.
        if !self.is_running() {
            process.end(End::Lost);
        }
    }

    /// Drops a process that has ended.
    pub(crate) fn unregister(&self, call: &CallId) {
        lock(&self.calls).remove(call);
    }

    /// Sends a request. Fails when the worker is gone or the request is too long.
    pub(crate) async fn request(
        &self,
        request: &Request,
        pipe: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let packet = packet(request)?;
        loop {
            match self.socket.try_io(Interest::WRITABLE, || send(&*self.socket, &packet, pipe)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                answer => return answer,
            }
        }
    }

    /// Requests the end of a call, without waiting.
    pub(crate) fn stop_soon(&self, call: &CallId) {
        let request = Request::Stop { call: call.clone() };
        // If it cannot be sent, the call ends with its task.
        let _ = packet(&request).and_then(|packet| send(&*self.socket, &packet, None));
    }

    /// Ends the worker and all its processes, and waits until they are gone.
    pub(crate) async fn close(&self) {
        // Fails if the worker is gone already.
        let _ = shutdown(&*self.socket, Shutdown::Both);
        let mut state = self.state.subscribe();
        let gone = state.wait_for(|state| *state == WorkerState::Gone);
        if timeout(CLOSE_MAX, gone).await.is_err() {
            let pid = self.worker.and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for WorkerLink {
    fn drop(&mut self) {
        // The worker sees the shutdown at once, even if other processes hold the socket.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

/// Supervises a worker until it has ended.
async fn supervise(
    socket: Arc<UnixStream>,
    calls: Calls,
    state: watch::Sender<WorkerState>,
    mut child: Child,
) {
    let mut buffer = vec![0; REPLY_BYTES_MAX];
    while let Some((reply, socket)) = next(&socket, &mut buffer).await {
        dispatch(reply, socket, &calls);
    }
    state.send_replace(WorkerState::Ending);
    // The worker may still run, but its replies are no longer read.
    let _ = shutdown(&*socket, Shutdown::Both);
    for process in lock(&calls).values() {
        process.end(End::Lost);
    }
    let _ = child.wait().await;
    state.send_replace(WorkerState::Gone);
}

fn dispatch(reply: Reply, socket: Option<OwnedFd>, calls: &Calls) {
    let find = |call: &CallId| lock(calls).get(call).cloned();
    let end = |call: &CallId, end| {
        if let Some(process) = find(call) {
            process.end(end);
        }
    };
    match reply {
        Reply::Listening { call } => {
            let process = find(&call);
            if let (Some(socket), Some(process)) = (socket, process)
                && let Some(network) = &process.network
            {
                network.serve(socket, process.watch());
            }
        }
        Reply::Failed { call, reason } => end(&call, End::Failed(reason)),
        Reply::Stale { call, path } => end(&call, End::Stale(path)),
        Reply::Ended { call, exit } => end(&call, End::Exit(exit)),
        Reply::Stopped { call } => {
            if let Some(process) = find(&call) {
                process.set_stopped();
            }
        }
        Reply::Ready | Reply::Refused { .. } => {}
    }
}

/// The next reply, with the socket that may come with it. `None` if the worker is gone or sent an invalid message.
async fn next(socket: &UnixStream, buffer: &mut [u8]) -> Option<(Reply, Option<OwnedFd>)> {
    loop {
        match socket.try_io(Interest::READABLE, || receive(socket, buffer)) {
            Ok(Some(reply)) => return Some(reply),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.readable().await.ok()?;
            }
            Ok(None) | Err(_) => return None,
        }
    }
}

/// A worker that was just started.
struct LaunchedWorker {
    socket: UnixStream,
    child: Child,
    tmp: TempDir,
}

fn launch(
    settings: &ShellSettings,
    policy: Policy,
    variables: Vec<(String, String)>,
) -> io::Result<LaunchedWorker> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    ioctl_fionbio(&ours, true)?;
    // The socket keeps packets apart, but readiness works as for a stream.
    let ours = UnixStream::from_std(std::os::unix::net::UnixStream::from(ours))?;
    let tmp = tempfile::Builder::new().prefix("task-").tempdir_in(&settings.policy.tmp)?;
    let policy = Policy { tmp: tmp.path().to_owned(), ..policy };
    let mut command = Command::new(&settings.worker.program);
    command
        .args(&settings.worker.args)
        .env_clear()
        .envs(settings.environment.variables())
        .envs(temp_variables(&policy))
        .envs(variables)
        .env(SETUP, serde_json::to_string(&Setup { role: WorkerRole::Guard, policy })?)
        .current_dir("/")
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = tokio::process::Command::from(command).spawn()?;
    Ok(LaunchedWorker { socket: ours, child, tmp })
}

/// Environment variables with the folders for temporary files and caches.
fn temp_variables(policy: &Policy) -> Vec<(&'static str, PathBuf)> {
    match policy.mode {
        SandboxMode::ReadOnly | SandboxMode::Workspace => {
            let _ = fs::create_dir(policy.tmp.join(".cache"));
            vec![
                ("TMPDIR", PathBuf::from("/tmp")),
                ("XDG_CACHE_HOME", Path::new("/tmp").join(".cache")),
                // npm does not read the variable above.
                ("npm_config_cache", Path::new("/tmp").join(".cache/npm")),
            ]
        }
        SandboxMode::Full => vec![("TMPDIR", policy.tmp.clone())],
    }
}
