//! The shell of one task: its worker, and the commands that run or have run in it.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_core::port::Progress;
use rustix::io::ioctl_fionbio;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::link::Link;
use crate::message::{CallId, Order};
use crate::process::{End, Output, Process, Status, hold};
use crate::pump::pump;
use crate::results::Results;
use crate::settings::Settings;
use crate::transcript::Transcript;

/// Commands of a task that run in the background at a time.
pub(crate) const BACKGROUND_MAX: usize = 8;

/// Commands that have ended and can still be asked for; the oldest is forgotten first.
const ENDED_MAX: usize = 64;

/// Commands that run or hold their output open at a time, whatever started them.
const OPEN_MAX: usize = 64;

/// How long a call may take to be gone before its whole worker is ended.
const STOP_MAX: Duration = Duration::from_secs(8);

/// The shell of one task.
pub(crate) struct TaskShell {
    settings: Arc<Settings>,
    results: Results,
    /// The present worker. A new one begins with a new cell.
    link: Mutex<Arc<OnceCell<Arc<Link>>>>,
    processes: Mutex<Vec<Entry>>,
    pumps: Mutex<JoinSet<()>>,
    closed: AtomicBool,
}

/// A command that can be asked for.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) process: Arc<Process>,
    link: Arc<Link>,
    /// Nobody waits for it.
    background: bool,
}

/// A command that somebody waits for. Dropped before it is let go, it is ended.
pub(crate) struct Leash {
    pub(crate) entry: Entry,
    /// Reads its output; whoever waits for the command drives it.
    pub(crate) pumping: Pumping,
    held: bool,
}

/// A [`pump`] at work.
pub(crate) type Pumping = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Leash {
    /// From now on somebody else sees to its end, and `task` reads its output.
    pub(crate) fn let_go(mut self, task: &TaskShell) -> Entry {
        self.held = false;
        if self.entry.process.status().output != Output::Closed {
            let pumping = std::mem::replace(&mut self.pumping, Box::pin(std::future::ready(())));
            let mut pumps = hold(&task.pumps);
            while pumps.try_join_next().is_some() {}
            pumps.spawn(pumping);
        }
        self.entry.clone()
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if self.held {
            self.entry.process.hush();
            self.entry.link.stop_soon(&self.entry.process.id);
        }
    }
}

/// Why a command could not be handed to a worker. For the user.
pub(crate) struct Unavailable(pub(crate) String);

impl TaskShell {
    pub(crate) fn new(settings: Arc<Settings>, task_id: &TaskId) -> Self {
        Self {
            results: Results::of(&settings.results, task_id),
            settings,
            link: Mutex::default(),
            processes: Mutex::default(),
            pumps: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Starts a command. If what the worker protects was replaced from outside, a new worker is
    /// made first.
    pub(crate) async fn start(
        &self,
        command: &str,
        workdir: &Path,
        progress: &Progress,
    ) -> Result<Leash, Unavailable> {
        let open = hold(&self.processes).iter().filter(|entry| !is_gone(entry)).count();
        if open >= OPEN_MAX {
            return Err(Unavailable(format!(
                "{OPEN_MAX} commands are running already: end some with `bash_kill`"
            )));
        }
        let link = self.link().await?;
        self.hand_over(&link, command, workdir, progress).await
    }

    /// Ends a worker that no longer protects what it should, and everything in it.
    pub(crate) async fn renew(&self, entry: &Entry) {
        entry.link.close().await;
    }

    /// From now on `entry` runs in the background, unless there are too many already.
    pub(crate) fn to_background(&self, entry: &Entry) -> bool {
        let mut processes = hold(&self.processes);
        if processes.iter().filter(|entry| is_in_background(entry)).count() >= BACKGROUND_MAX {
            return false;
        }
        let same = |other: &&mut Entry| other.process.id == entry.process.id;
        if let Some(entry) = processes.iter_mut().find(same) {
            entry.background = true;
        }
        entry.process.hush();
        true
    }

    /// The commands that run in the background.
    pub(crate) fn in_background(&self) -> Vec<CallId> {
        let processes = hold(&self.processes);
        let running = processes.iter().filter(|entry| is_in_background(entry));
        running.map(|entry| entry.process.id.clone()).collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<Entry> {
        hold(&self.processes).iter().find(|entry| entry.process.id.0 == id).cloned()
    }

    /// Nobody will ask for a command any more that has ended and left nothing.
    pub(crate) fn forget(&self, entry: &Entry) {
        entry.link.forget(&entry.process.id);
        hold(&self.processes).retain(|other| other.process.id != entry.process.id);
    }

    /// Ends a command and everything it started, and waits until it is gone.
    pub(crate) async fn stop(&self, entry: &Entry) -> Status {
        let order = Order::Stop { call: entry.process.id.clone() };
        let sent = entry.link.order(&order, None).await;
        if sent.is_ok()
            && let Ok(status) = timeout(STOP_MAX, entry.process.stopped()).await
        {
            return status;
        }
        entry.link.close().await;
        entry.process.end(End::Lost);
        entry.process.status()
    }

    /// Ends everything.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let cell = std::mem::take(&mut *hold(&self.link));
        if let Some(link) = cell.get() {
            link.close().await;
        }
        let mut pumps = std::mem::take(&mut *hold(&self.pumps));
        pumps.shutdown().await;
        hold(&self.processes).clear();
    }

    async fn link(&self) -> Result<Arc<Link>, Unavailable> {
        loop {
            let cell = Arc::clone(&hold(&self.link));
            let link = cell.get_or_try_init(|| Link::start(&self.settings)).await;
            let link = link.map_err(Unavailable)?;
            if self.closed.load(Ordering::Acquire) {
                link.close().await;
                return Err(Unavailable("its task has ended".to_owned()));
            }
            if link.is_up() {
                return Ok(Arc::clone(link));
            }
            // It has ended: the next one is a new one, whoever starts it.
            let mut present = hold(&self.link);
            if Arc::ptr_eq(&present, &cell) {
                *present = Arc::default();
            }
        }
    }

    async fn hand_over(
        &self,
        link: &Arc<Link>,
        command: &str,
        workdir: &Path,
        progress: &Progress,
    ) -> Result<Leash, Unavailable> {
        let failed = |error: io::Error| Unavailable(error.to_string());
        let (reader, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        ioctl_fionbio(&reader, true).map_err(|error| failed(error.into()))?;
        let id = CallId::new();
        let transcript = Transcript::new(self.results.clone(), id.to_string());
        let process = Arc::new(Process::new(id.clone(), transcript, progress.clone()));
        link.enter(&process);
        let entry =
            Entry { process: Arc::clone(&process), link: Arc::clone(link), background: false };
        self.remember(entry.clone());
        let pumping = Box::pin(pump(process, reader, Arc::clone(link)));
        let leash = Leash { entry: entry.clone(), pumping, held: true };
        let order =
            Order::Start { call: id, command: command.to_owned(), workdir: workdir.to_owned() };
        if let Err(error) = link.order(&order, Some(writer.as_fd())).await {
            let too_long = error.kind() == io::ErrorKind::FileTooLarge;
            let advice = "it is too long: write it to a file and run that";
            entry.process.end(if too_long { End::Failed(advice.to_owned()) } else { End::Lost });
        }
        Ok(leash)
    }

    fn remember(&self, entry: Entry) {
        let mut processes = hold(&self.processes);
        let ended = processes.iter().filter(|entry| is_gone(entry)).count();
        if ended >= ENDED_MAX
            && let Some(oldest) = processes.iter().position(is_gone)
        {
            let oldest = processes.remove(oldest);
            oldest.link.forget(&oldest.process.id);
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
