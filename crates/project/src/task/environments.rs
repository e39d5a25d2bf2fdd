//! The environments of the processes whose tasks run here, by the id that each task's route names.
//!
//! | the process of a task          | the task works with                                                     |
//! |--------------------------------|-------------------------------------------------------------------------|
//! | gave its variables             | these variables, and what was recorded with the task                    |
//! | is gone, or never had any here | this process's variables, and what was recorded with the task           |
//! | is gone, and this process cannot reach the task's model | the variables of another process that can    |
//! | used a provider that no process reaches at the same address and with a key | nothing: it waits for one    |
//!
//! Variables are kept in memory, until the last task of their process has ended; those of this process until it ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use antiphon_core::{Position, TaskCreated, TaskId, TaskSummary, WaitingFor};
use antiphon_runtime::{NO_MODEL, Orchestrator, TaskEnvironment};
use secrecy::SecretString;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::environment::{Environment, Warnings};
use crate::error::ProjectError;
use crate::models::Route;
use crate::project::{OwnerRole, Project};
use crate::task::gone_process::without_process;
use crate::task::process_environment::ProcessEnvironment;
use crate::task::registered_processes::{Origin, ProcessLease, RegisteredProcesses};
use crate::task::task_process::TaskProcess;
use crate::toolset::McpPool;
use crate::toolset::mcp_pool::unavailable_servers;

/// How long the clients of an owner that has ended may take to bring their environments to this one, before the tasks
/// of processes that are gone go on without theirs.
const ATTACH_WAIT: Duration = Duration::from_secs(1);

/// Pause before a recovery that failed is tried again.
const RECOVER_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Pause before the events of a task are read again when the journal does not answer.
const FOLLOW_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The environments of the processes whose tasks run here.
pub struct ProjectEnvironments {
    project: Arc<Project>,
    /// What this process was started with.
    own: Environment,
    /// The id of this process, if it gives anything to a task.
    own_id: OnceLock<Uuid>,
    /// What tasks work with that were created through the interfaces of this process; absent when it is there for a
    /// task of its own: then the settings alone count for them.
    base: Option<TaskProcess>,
    is_server: bool,
    mcp: Arc<McpPool>,
    processes: RegisteredProcesses,
    /// Fires when a server wants the journal.
    leaving: CancellationToken,
    /// Forgets the variables of processes whose tasks have ended, and ends servers that no process uses.
    watchers: Mutex<JoinSet<()>>,
    /// Whose tasks are followed to their end. Absent before the start and after the end.
    orchestrator: Mutex<Option<Orchestrator>>,
    /// Every task is recovered here, or is about to be.
    recovers: AtomicBool,
    /// Fires when every task has been recovered here.
    recovered: CancellationToken,
}

impl ProjectEnvironments {
    /// Without the environment of any process.
    pub(crate) fn new(
        project: Arc<Project>,
        own: Environment,
        role: OwnerRole,
        mcp: Arc<McpPool>,
    ) -> Self {
        let is_server = matches!(role, OwnerRole::Server(_));
        let base = match role {
            OwnerRole::Server(process) | OwnerRole::Resume(process) => Some(process),
            OwnerRole::Run(_) => None,
        };
        Self {
            project,
            own,
            own_id: OnceLock::new(),
            base,
            is_server,
            mcp,
            processes: RegisteredProcesses::default(),
            leaving: CancellationToken::new(),
            watchers: Mutex::default(),
            orchestrator: Mutex::default(),
            // A server recovers every task when it starts.
            recovers: AtomicBool::new(is_server),
            recovered: CancellationToken::new(),
        }
    }

    /// The tasks run in this orchestrator.
    pub(crate) fn serve(&self, orchestrator: &Orchestrator) {
        *self.orchestrator.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(orchestrator.clone());
        let mcp = Arc::clone(&self.mcp);
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.spawn(async move { mcp.end_unused().await });
    }

    fn orchestrator(&self) -> Option<Orchestrator> {
        self.orchestrator.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The owner before this one has ended: every task that is not paused goes on here, once. Its clients come first,
    /// with the environments of their tasks.
    pub fn take_over(&self) {
        if self.recovers.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(orchestrator) = self.orchestrator() else { return };
        let recovered = self.recovered.clone();
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            tokio::time::sleep(ATTACH_WAIT).await;
            while let Err(error) = orchestrator.recover().await {
                tracing::warn!(%error, "the tasks of the owner before could not be recovered");
                tokio::time::sleep(RECOVER_AGAIN_AFTER).await;
            }
            recovered.cancel();
        });
    }

    /// Whether the tasks of the owner before are about to go on here.
    pub fn is_recovering(&self) -> bool {
        self.recovers.load(Ordering::Relaxed) && !self.is_server && !self.recovered.is_cancelled()
    }

    /// Whether tasks of other processes are or were here.
    pub(crate) fn has_tasks_of_others(&self) -> bool {
        let own = self.own_id.get();
        self.recovers.load(Ordering::Relaxed) || self.processes.has_others(own)
    }

    /// Whether an unfinished task goes on here, at once or later, without a person, a client or another process.
    pub(crate) fn continues(&self, task: &TaskSummary) -> bool {
        let recovers = self.recovers.load(Ordering::Relaxed);
        if !recovers && !self.processes.holds(&task.root) {
            return false;
        }
        let is_recovering = self.is_recovering();
        let lacks_model = task.wait.as_ref().is_some_and(|wait| wait.code == NO_MODEL);
        match task.waiting_for {
            // Those that work have a slot.
            None => is_recovering,
            // Another process has to bring what is missing.
            Some(WaitingFor::Model) => is_recovering || !lacks_model,
            Some(WaitingFor::Peer | WaitingFor::Storage) => true,
            // A budget may take until the next month.
            Some(
                WaitingFor::Budget
                | WaitingFor::Approval
                | WaitingFor::Resume
                | WaitingFor::ToolResult,
            ) => false,
        }
    }

    /// Fires when a server wants the journal.
    pub fn leaving(&self) -> CancellationToken {
        self.leaving.clone()
    }

    /// Asks this process to give the journal to a server. False when it is a server itself.
    pub(crate) fn ask_to_leave(&self) -> bool {
        if !self.is_server {
            self.leaving.cancel();
        }
        !self.is_server
    }

    /// Redacts a secret from the tool results of every environment.
    pub fn add_secret(&self, secret: &SecretString) {
        self.processes.add_secret(secret);
    }

    /// Builds the environment of a process from its variables, with warnings for its user.
    pub(crate) async fn register(
        &self,
        id: Uuid,
        process: &TaskProcess,
        variables: BTreeMap<String, String>,
    ) -> Result<(ProcessLease, Vec<String>), ProjectError> {
        let environment = Environment {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            current_dir: process.folder.clone(),
            account_home: self.own.account_home.clone(),
            // The process has reported them itself.
            warnings: Warnings::new(|_| {}),
            ..Environment::default()
        };
        let settings = self.project.settings(&environment)?;
        let servers = self.mcp.connect(&settings).await;
        // Only this process knows of them.
        let warnings = servers.as_deref().map(|it| unavailable_servers(it)).unwrap_or_default();
        let built = ProcessEnvironment::build(&self.project, settings, process, servers)?;
        let lease = self.processes.insert(id, Arc::new(built), Origin::Registered)?;
        Ok((lease, warnings))
    }

    /// Adds the environment of this process.
    pub(crate) fn insert_own(
        &self,
        id: Uuid,
        environment: Arc<ProcessEnvironment>,
    ) -> Result<ProcessLease, ProjectError> {
        self.own_id.get_or_init(|| id);
        self.processes.insert(id, environment, Origin::Registered)
    }

    /// Keeps the environment that a process has registered, for a task that is about to start.
    pub(crate) fn lease(&self, id: Uuid) -> Option<ProcessLease> {
        self.processes.lease(id)
    }

    /// From now on a task and its descendants work with the environment of this process, until the task has ended.
    pub(crate) fn resume_with(&self, root: &TaskId, lease: &ProcessLease, here: &Orchestrator) {
        self.processes.resume_with(root.clone(), lease);
        self.release_when_ended(lease.clone(), root, here);
    }

    /// Keeps the environment of a process until a task of it has ended.
    pub(crate) fn release_when_ended(
        &self,
        lease: ProcessLease,
        task: &TaskId,
        here: &Orchestrator,
    ) {
        if !self.processes.hold(&lease, task) {
            return;
        }
        let (processes, task, orchestrator) = (self.processes.clone(), task.clone(), here.clone());
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        while watchers.try_join_next().is_some() {}
        watchers.spawn(async move {
            until_ended(&orchestrator, &task).await;
            processes.release(lease, &task);
        });
    }

    fn build(
        &self,
        environment: &Environment,
        process: &TaskProcess,
    ) -> Result<ProcessEnvironment, ProjectError> {
        let settings = self.project.settings(environment)?;
        let servers = self.mcp.servers(&settings);
        if let Some(servers) = servers.clone() {
            // Their tools appear when they are ready.
            let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
            watchers.spawn(async move { servers.connect_all(Duration::ZERO).await });
        }
        ProcessEnvironment::build(&self.project, settings, process, servers)
    }

    /// What a task of a process that gave no variables here works with.
    fn derived(&self, process: TaskProcess) -> Result<Arc<ProcessEnvironment>, ProjectError> {
        let process = TaskProcess { id: None, ..process };
        if let Some(known) = self.processes.derived(&process) {
            return Ok(known);
        }
        let environment = Environment {
            current_dir: process.folder.clone().or_else(|| self.own.current_dir.clone()),
            warnings: Warnings::new(|_| {}),
            ..self.own.clone()
        };
        let mut built = self.build(&environment, &process)?;
        built.task = Arc::new(without_process(&built.task, &built.models));
        let built = Arc::new(built);
        self.processes.keep_derived(process, &built);
        Ok(built)
    }

    /// The variables of another process that reaches the model of a task, with what was recorded with the task.
    fn of_another_process(
        &self,
        process: &TaskProcess,
        task: &TaskCreated,
    ) -> Result<Option<Arc<ProcessEnvironment>>, ProjectError> {
        let others = self.processes.all();
        for other in others.iter().filter(|other| other.reaches_model(task)) {
            let environment = Environment {
                current_dir: process.folder.clone(),
                ..other.settings().environment.clone()
            };
            let built = self.build(&environment, process)?;
            // At the same address, which the other process need not use for tasks of its own.
            if built.reaches_model(task) {
                return Ok(Some(Arc::new(built)));
            }
        }
        Ok(None)
    }

    /// Forgets every environment, and lets go of the orchestrator.
    pub(crate) async fn close(&self) {
        *self.orchestrator.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let mut watchers =
            std::mem::take(&mut *self.watchers.lock().unwrap_or_else(PoisonError::into_inner));
        watchers.shutdown().await;
        self.processes.clear();
    }

    /// What is recorded with a task that is created through the interfaces of this process.
    pub(crate) fn recorded(&self) -> Option<TaskProcess> {
        self.base.clone().filter(TaskProcess::has_own_permissions)
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }
}

impl antiphon_runtime::TaskEnvironments for ProjectEnvironments {
    fn find(
        &self,
        task_id: &TaskId,
        task: &TaskCreated,
    ) -> Result<Option<Arc<TaskEnvironment>>, String> {
        let process = Route::parse(task.route.as_ref())?.process.unwrap_or_default();
        let root = task.root.as_ref().unwrap_or(task_id);
        if let Some(known) = self.processes.of_task(root, process.id) {
            return Ok(Some(Arc::clone(&known.task)));
        }
        if self
            .base
            .as_ref()
            .is_some_and(|base| *base == process || process == TaskProcess::default())
        {
            return Ok(None);
        }
        let derived = self.derived(process.clone()).map_err(|error| error.to_string())?;
        let Some(id) = process.id else { return Ok(Some(Arc::clone(&derived.task))) };
        if derived.reaches_model(task) {
            return Ok(Some(Arc::clone(&derived.task)));
        }
        let other = self.of_another_process(&process, task).map_err(|error| error.to_string())?;
        let Some(other) = other else { return Ok(Some(Arc::clone(&derived.task))) };
        let lease = self.processes.insert(id, other, Origin::Borrowed);
        let lease = lease.map_err(|error| error.to_string())?;
        let found = Arc::clone(&lease.environment().task);
        if let Some(orchestrator) = self.orchestrator() {
            self.release_when_ended(lease, root, &orchestrator);
        }
        Ok(Some(found))
    }

    fn all(&self) -> Vec<Arc<TaskEnvironment>> {
        let all = self.processes.all_with_derived();
        all.iter().map(|environment| Arc::clone(&environment.task)).collect()
    }
}

/// Returns when a task has ended.
async fn until_ended(orchestrator: &Orchestrator, task: &TaskId) {
    loop {
        let mut events = orchestrator.follow(Some(task.clone()), Position(0));
        loop {
            match events.next().await {
                Ok(event) if event.body.ends_task() => return,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        tokio::time::sleep(FOLLOW_AGAIN_AFTER).await;
    }
}
