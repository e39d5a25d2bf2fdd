//! The shell's end of a worker.
//!
//! One future looks after it: it passes on what the worker says, and when the worker is gone it
//! tells everybody whose command ran there. Dropped, it closes the socket, and the worker ends by
//! itself.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_sandbox::{Mode, Policy};
use rustix::io::ioctl_fionbio;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use tempfile::TempDir;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::message::{CallId, Order, Reply, SETUP, Setup, Stage, packet, receive, send};
use crate::process::{End, Process, hold};
use crate::settings::Settings;

/// How long a worker may take to be ready.
const START_MAX: Duration = Duration::from_secs(20);

/// How long it may take to be gone.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// Longest message of a worker, in bytes. Longer ones are cut, and then understood by nobody.
const REPLY_BYTES_MAX: usize = 16 * 1024;

type Calls = Arc<Mutex<HashMap<CallId, Arc<Process>>>>;

/// The shell's end of a worker.
pub(crate) struct Link {
    socket: Arc<UnixStream>,
    calls: Calls,
    life: watch::Sender<Life>,
    worker: Option<u32>,
    _keeper: JoinSet<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Up,
    /// It takes no more orders.
    Ending,
    /// The process is gone, and everything that it started.
    Gone,
}

impl Link {
    /// Starts a worker and waits until it is ready. An error is for the user.
    pub(crate) async fn start(settings: &Settings) -> Result<Arc<Self>, String> {
        let launched = launch(settings).map_err(|error| {
            format!("its worker `{}` cannot be started: {error}", settings.worker.program.display())
        })?;
        let Launched { socket, child, tmp } = launched;
        let socket = Arc::new(socket);
        let mut buffer = vec![0; REPLY_BYTES_MAX];
        match timeout(START_MAX, next(&socket, &mut buffer)).await {
            Ok(Some(Reply::Ready)) => {}
            Ok(Some(Reply::Refused { reason })) => return Err(reason),
            Ok(_) => return Err("its worker ended before it was ready".to_owned()),
            Err(_) => return Err(format!("its worker was not ready after {START_MAX:?}")),
        }
        // From now on the worker takes it away.
        let _ = tmp.keep();
        let (calls, life, worker) = (Calls::default(), watch::Sender::new(Life::Up), child.id());
        let mut keeper = JoinSet::new();
        keeper.spawn(keep(Arc::clone(&socket), Arc::clone(&calls), life.clone(), child));
        Ok(Arc::new(Self { socket, calls, life, worker, _keeper: keeper }))
    }

    /// Whether it takes orders.
    pub(crate) fn is_up(&self) -> bool {
        *self.life.borrow() == Life::Up
    }

    /// From now on `process` learns what the worker says of it.
    pub(crate) fn enter(&self, process: &Arc<Process>) {
        hold(&self.calls).insert(process.id.clone(), Arc::clone(process));
        // The worker may have ended before the entry was made.
        if !self.is_up() {
            process.end(End::Lost);
        }
    }

    /// Forgets a process that is gone.
    pub(crate) fn forget(&self, call: &CallId) {
        hold(&self.calls).remove(call);
    }

    /// Gives an order. An error says that the worker is gone, or that the order is too long.
    pub(crate) async fn order(
        &self,
        order: &Order,
        pipe: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let packet = packet(order)?;
        loop {
            match self.socket.try_io(Interest::WRITABLE, || send(&*self.socket, &packet, pipe)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.socket.writable().await?;
                }
                answer => return answer,
            }
        }
    }

    /// Asks for a call to be ended, without waiting for anything.
    pub(crate) fn stop_soon(&self, call: &CallId) {
        let order = Order::Stop { call: call.clone() };
        // If it cannot be sent, the call ends with its task.
        let _ = packet(&order).and_then(|packet| send(&*self.socket, &packet, None));
    }

    /// Ends the worker and everything it started, and waits until it is gone.
    pub(crate) async fn close(&self) {
        // It may be gone already.
        let _ = shutdown(&*self.socket, Shutdown::Both);
        let mut life = self.life.subscribe();
        let gone = life.wait_for(|life| *life == Life::Gone);
        if timeout(CLOSE_MAX, gone).await.is_err() {
            let pid = self.worker.and_then(|pid| i32::try_from(pid).ok());
            if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The worker sees it at once, however long others hold the socket.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

/// Looks after a worker until it is gone.
async fn keep(socket: Arc<UnixStream>, calls: Calls, life: watch::Sender<Life>, mut child: Child) {
    let mut buffer = vec![0; REPLY_BYTES_MAX];
    while let Some(reply) = next(&socket, &mut buffer).await {
        pass_on(reply, &calls);
    }
    life.send_replace(Life::Ending);
    // Whatever it is doing, it can no longer say so.
    let _ = shutdown(&*socket, Shutdown::Both);
    for process in hold(&calls).values() {
        process.end(End::Lost);
    }
    let _ = child.wait().await;
    life.send_replace(Life::Gone);
}

fn pass_on(reply: Reply, calls: &Calls) {
    let find = |call: &CallId| hold(calls).get(call).cloned();
    let end = |call: &CallId, end| {
        if let Some(process) = find(call) {
            process.end(end);
        }
    };
    match reply {
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

/// What the worker says next; `None` if it is gone or talks nonsense.
async fn next(socket: &UnixStream, buffer: &mut [u8]) -> Option<Reply> {
    loop {
        match socket.try_io(Interest::READABLE, || receive(socket, buffer)) {
            Ok(Some((reply, _))) => return Some(reply),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                socket.readable().await.ok()?;
            }
            Ok(None) | Err(_) => return None,
        }
    }
}

/// A worker that was just started.
struct Launched {
    socket: UnixStream,
    child: Child,
    tmp: TempDir,
}

fn launch(settings: &Settings) -> io::Result<Launched> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    ioctl_fionbio(&ours, true)?;
    // It keeps packets apart, but is waited for as a stream is.
    let ours = UnixStream::from_std(std::os::unix::net::UnixStream::from(ours))?;
    let tmp = tempfile::Builder::new().prefix("task-").tempdir_in(&settings.policy.tmp)?;
    let policy = Policy { tmp: tmp.path().to_owned(), ..settings.policy.clone() };
    let mut command = Command::new(&settings.worker.program);
    command
        .args(&settings.worker.args)
        .env_clear()
        .envs(settings.environment.variables())
        .envs(places(&policy))
        .env(SETUP, serde_json::to_string(&Setup { stage: Stage::Guard, policy })?)
        .current_dir("/")
        .stdin(theirs)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = tokio::process::Command::from(command).spawn()?;
    Ok(Launched { socket: ours, child, tmp })
}

/// Where programs write what nobody asked for.
fn places(policy: &Policy) -> Vec<(&'static str, PathBuf)> {
    match policy.mode {
        Mode::ReadOnly | Mode::Workspace => {
            let _ = fs::create_dir(policy.tmp.join(".cache"));
            vec![
                ("TMPDIR", PathBuf::from("/tmp")),
                ("XDG_CACHE_HOME", Path::new("/tmp").join(".cache")),
            ]
        }
        Mode::Full => vec![("TMPDIR", policy.tmp.clone())],
    }
}
