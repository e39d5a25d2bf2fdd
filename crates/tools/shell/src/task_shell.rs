//! The shell of one task: its worker, and the commands that run or have run in it.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_core::port::{Progress, Rule};
use antiphon_hosts::HostRule;
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::access::Access;
use crate::call_record::CallRecord;
use crate::message::{CallId, ProxyRequest, Request};
use crate::network::CallNetwork;
use crate::output_reader::read_output;
use crate::process::{End, Output, Process, Status, lock};
use crate::refusal::SandboxBounds;
use crate::result_files::ResultFiles;
use crate::settings::ShellSettings;
use crate::transcript::Transcript;
use crate::worker_link::WorkerLink;

/// Commands of a task that run in the background at a time.
pub(crate) const BACKGROUND_MAX: usize = 8;

/// Commands that have ended and can still be queried. Beyond it, the oldest is dropped.
const ENDED_MAX: usize = 64;

/// Commands of a task that run or hold their output open at a time.
const OPEN_MAX: usize = 64;

/// How long a call may take to stop before its whole worker is ended.
const STOP_MAX: Duration = Duration::from_secs(8);

/// The shell of one task.
pub(crate) struct TaskShell {
    settings: Arc<ShellSettings>,
    results: ResultFiles,
    /// The current worker. A new worker gets a new cell.
    link: Mutex<Arc<OnceCell<Arc<WorkerLink>>>>,
    processes: Mutex<Vec<Entry>>,
    readers: Mutex<JoinSet<()>>,
    closed: AtomicBool,
}

/// A command that `bash_output` and `bash_kill` find.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) process: Arc<Process>,
    link: Arc<WorkerLink>,
    /// No call waits for it.
    background: bool,
    /// Its worker runs nothing else and ends with it.
    has_own_worker: bool,
}

/// A command that a call waits for. Dropping it before [`StartedCommand::release_to`] ends the
/// command.
pub(crate) struct StartedCommand {
    pub(crate) entry: Entry,
    /// Reads the output. The call that waits for the command polls it.
    pub(crate) reading_output: OutputFuture,
    owned: bool,
}

/// A command to start.
pub(crate) struct CommandRequest<'a> {
    /// Id of the call, the same in every process.
    pub(crate) call_uuid: Uuid,
    /// Where its output so far is kept.
    pub(crate) record: &'a Arc<CallRecord>,
    pub(crate) command: &'a str,
    pub(crate) workdir: &'a Path,
    /// What it gets beyond the sandbox of its task.
    pub(crate) access: Access,
    pub(crate) progress: &'a Progress,
    /// Rules that were granted to the task.
    pub(crate) granted: &'a [Rule],
    /// Hosts that the call asked for and was allowed.
    pub(crate) hosts: &'a [HostRule],
}

/// A running [`read_output`].
pub(crate) type OutputFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Entry {
    /// Whether nothing of the command may continue after the call that started it.
    pub(crate) fn ends_with_call(&self) -> bool {
        self.process.bounds.access == Access::Repository
    }
}

impl StartedCommand {
    /// The caller no longer owns the command; from now on `task` reads its output.
    pub(crate) fn release_to(mut self, task: &TaskShell) -> Entry {
        self.owned = false;
        if self.entry.process.status().output != Output::Closed {
            let reading_output =
                std::mem::replace(&mut self.reading_output, Box::pin(std::future::ready(())));
            let mut readers = lock(&task.readers);
            while readers.try_join_next().is_some() {}
            readers.spawn(reading_output);
        }
        self.entry.clone()
    }
}

impl Drop for StartedCommand {
    fn drop(&mut self) {
        if self.owned {
            self.entry.process.stop_progress();
            self.entry.link.stop_soon(&self.entry.process.id);
        }
    }
}

/// Why a command could not be sent to a worker. A text for the user.
pub(crate) struct Unavailable(pub(crate) String);

impl TaskShell {
    pub(crate) fn new(settings: Arc<ShellSettings>, task_id: &TaskId) -> Self {
        Self {
            results: ResultFiles::of(&settings.results, task_id),
            settings,
            link: Mutex::default(),
            processes: Mutex::default(),
            readers: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Starts a command in the current worker, or in a new one if there is none.
    pub(crate) async fn start(
        &self,
        request: &CommandRequest<'_>,
    ) -> Result<StartedCommand, Unavailable> {
        let open = lock(&self.processes).iter().filter(|entry| !is_gone(entry)).count();
        if open >= OPEN_MAX {
            return Err(Unavailable(format!(
                "{OPEN_MAX} commands are running already: end some with `bash_kill`"
            )));
        }
        let link = match request.access {
            Access::Sandbox => self.link().await?,
            Access::Repository | Access::Everything => {
                self.own_link(request.access, request.workdir).await?
            }
        };
        self.send_start(&link, request).await
    }

    /// Ends the worker of a command that has one of its own, and waits until it has cleaned up.
    pub(crate) async fn close_own_worker(&self, entry: &Entry) {
        if entry.has_own_worker {
            entry.link.close().await;
        }
    }

    /// Ends a worker whose sandbox no longer protects its paths, and every process in it.
    pub(crate) async fn close_worker(&self, entry: &Entry) {
        entry.link.close().await;
    }

    /// Moves a command to the background. Returns `false` when too many run there already.
    pub(crate) fn to_background(&self, entry: &Entry) -> bool {
        let mut processes = lock(&self.processes);
        if processes.iter().filter(|entry| is_in_background(entry)).count() >= BACKGROUND_MAX {
            return false;
        }
        let same = |other: &&mut Entry| other.process.id == entry.process.id;
        if let Some(entry) = processes.iter_mut().find(same) {
            entry.background = true;
        }
        entry.process.stop_progress();
        true
    }

    /// The commands that run in the background.
    pub(crate) fn in_background(&self) -> Vec<CallId> {
        let processes = lock(&self.processes);
        let running = processes.iter().filter(|entry| is_in_background(entry));
        running.map(|entry| entry.process.id.clone()).collect()
    }

    /// Keeps for later processes that the task had a command in the background. Without the note the model is not
    /// offered the tools for it, which run all the same.
    pub(crate) async fn note_background(&self) {
        let results = self.results.clone();
        let _ = tokio::task::spawn_blocking(move || results.note_background()).await;
    }

    pub(crate) fn find(&self, id: &str) -> Option<Entry> {
        lock(&self.processes).iter().find(|entry| entry.process.id.0 == id).cloned()
    }

    /// Drops a command that has ended and left no process.
    pub(crate) fn unregister(&self, entry: &Entry) {
        entry.link.unregister(&entry.process.id);
        lock(&self.processes).retain(|other| other.process.id != entry.process.id);
    }

    /// Ends every process of a command and waits until they are gone.
    pub(crate) async fn stop(&self, entry: &Entry) -> Status {
        let request = Request::Stop { call: entry.process.id.clone() };
        let sent = entry.link.request(&request, None).await;
        if sent.is_ok()
            && let Ok(status) = timeout(STOP_MAX, entry.process.stopped()).await
        {
            return status;
        }
        entry.link.close().await;
        entry.process.end(End::Lost);
        entry.process.status()
    }

    /// Ends the worker and every command.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let cell = std::mem::take(&mut *lock(&self.link));
        if let Some(link) = cell.get() {
            link.close().await;
        }
        let mut readers = std::mem::take(&mut *lock(&self.readers));
        readers.shutdown().await;
        let entries = std::mem::take(&mut *lock(&self.processes));
        for entry in entries {
            self.close_own_worker(&entry).await;
        }
    }

    async fn link(&self) -> Result<Arc<WorkerLink>, Unavailable> {
        loop {
            let cell = Arc::clone(&lock(&self.link));
            let policy = || self.settings.policy.clone();
            let start = || WorkerLink::start(&self.settings, policy(), Vec::new());
            let link = cell.get_or_try_init(start).await;
            let link = link.map_err(Unavailable)?;
            if self.closed.load(Ordering::Acquire) {
                link.close().await;
                return Err(Unavailable("its task has ended".to_owned()));
            }
            if link.is_running() {
                return Ok(Arc::clone(link));
            }
            // The worker has ended: the next caller starts a new one.
            let mut present = lock(&self.link);
            if Arc::ptr_eq(&present, &cell) {
                *present = Arc::default();
            }
        }
    }

    /// A worker for one command.
    async fn own_link(
        &self,
        access: Access,
        workdir: &Path,
    ) -> Result<Arc<WorkerLink>, Unavailable> {
        let policy = access.policy(&self.settings.policy, workdir);
        let link = WorkerLink::start(&self.settings, policy, access.variables()).await;
        let link = link.map_err(Unavailable)?;
        if self.closed.load(Ordering::Acquire) {
            link.close().await;
            return Err(Unavailable("its task has ended".to_owned()));
        }
        Ok(link)
    }

    async fn send_start(
        &self,
        link: &Arc<WorkerLink>,
        request: &CommandRequest<'_>,
    ) -> Result<StartedCommand, Unavailable> {
        let failed = |error: io::Error| Unavailable(error.to_string());
        let (reader, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        ioctl_fionbio(&reader, true).map_err(|error| failed(error.into()))?;
        let id = CallId::new();
        let transcript = Transcript::new(self.results.clone(), id.to_string());
        let network = self.network(request);
        let proxy = network.as_ref().map(|network| ProxyRequest { no_proxy: network.no_proxy() });
        let progress = request.progress.clone();
        let policy = request.access.policy(&self.settings.policy, request.workdir);
        let bounds = SandboxBounds::of(&policy, request.access);
        let record = Arc::clone(request.record);
        let process = Process::new(id.clone(), transcript, progress, network, bounds, record);
        let process = Arc::new(process);
        link.register(&process);
        let entry = Entry {
            process: Arc::clone(&process),
            link: Arc::clone(link),
            background: false,
            has_own_worker: request.access != Access::Sandbox,
        };
        self.record(entry.clone());
        let reading_output = Box::pin(read_output(process, reader, Arc::clone(link)));
        let started = StartedCommand { entry: entry.clone(), reading_output, owned: true };
        let request = Request::Start {
            call: id,
            call_uuid: request.call_uuid,
            command: request.command.to_owned(),
            workdir: request.workdir.to_owned(),
            proxy,
        };
        if let Err(error) = link.request(&request, Some(writer.as_fd())).await {
            let too_long = error.kind() == io::ErrorKind::FileTooLarge;
            let advice = "it is too long: write it to a file and run that";
            entry.process.end(if too_long { End::Failed(advice.to_owned()) } else { End::Lost });
        }
        Ok(started)
    }

    fn network(&self, request: &CommandRequest<'_>) -> Option<CallNetwork> {
        // Without the sandbox a command has the network of the machine.
        let network = self.settings.network.as_ref();
        let network = network.filter(|_| request.access != Access::Everything)?;
        network.for_call(&self.settings.policy, request.granted, request.hosts)
    }

    fn record(&self, entry: Entry) {
        let mut processes = lock(&self.processes);
        let ended = processes.iter().filter(|entry| is_gone(entry)).count();
        if ended >= ENDED_MAX
            && let Some(oldest) = processes.iter().position(is_gone)
        {
            let oldest = processes.remove(oldest);
            oldest.link.unregister(&oldest.process.id);
        }
        processes.push(entry);
    }
}

fn is_gone(entry: &Entry) -> bool {
    entry.process.status().is_gone()
}

fn is_in_background(entry: &Entry) -> bool {
    entry.background && entry.process.status().end.is_none()
}
