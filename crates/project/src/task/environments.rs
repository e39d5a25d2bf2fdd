//! The environments of the processes whose tasks run here, by the id that each task's route names.
//!
//! | the process of a task          | the task works with                                                     |
//! |--------------------------------|-------------------------------------------------------------------------|
//! | gave its variables             | these variables, and what was recorded with the task                    |
//! | is gone, or never had any here | this process's variables, and what was recorded with the task           |
//! | is gone, and this process cannot reach the task's model | the variables of another process that can    |
//! | used a provider that no process reaches at the same address and with a key | nothing: it waits for one    |
//!
//! Variables are kept in memory, until the task of their process has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{Position, TaskCreated, TaskId};
use antiphon_runtime::{Orchestrator, TaskEnvironment};
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
use crate::task::task_process::TaskProcess;
use crate::toolset::McpPool;
use crate::toolset::mcp_pool::unavailable_servers;

/// Processes whose variables are kept at a time. One more is refused.
pub const PROCESSES_MAX: usize = 4096;

/// Environments of processes that are gone, at most. One more forgets the others.
const DERIVED_MAX: usize = 64;

/// How long the clients of an owner that has ended may take to bring their environments to this one, before the tasks
/// of processes that are gone go on without theirs.
const ATTACH_WAIT: Duration = Duration::from_secs(1);

/// Pause before a recovery that failed is tried again.
const RECOVER_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The environments of the processes whose tasks run here.
pub struct ProjectEnvironments {
    project: Arc<Project>,
    /// What this process was started with.
    own: Environment,
    /// What tasks work with that were created through the interfaces of this process; absent when it is there for a
    /// task of its own: then the settings alone count for them.
    base: Option<TaskProcess>,
    is_server: bool,
    mcp: Arc<McpPool>,
    tables: Arc<Mutex<Tables>>,
    /// Fires when a server wants the journal.
    leaving: CancellationToken,
    /// Forgets variables when their task has ended, and ends servers that no process uses.
    watchers: Mutex<JoinSet<()>>,
    /// Whose tasks are followed to their end. Absent before the start and after the end.
    orchestrator: Mutex<Option<Orchestrator>>,
    /// Every task is recovered here, or is about to be.
    recovers: AtomicBool,
}

#[derive(Default)]
struct Tables {
    processes: HashMap<Uuid, Arc<ProcessEnvironment>>,
    derived: HashMap<TaskProcess, Arc<ProcessEnvironment>>,
    /// Redacted from the tool results of every environment.
    secrets: Vec<SecretString>,
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
            base,
            is_server,
            mcp,
            tables: Arc::default(),
            leaving: CancellationToken::new(),
            watchers: Mutex::default(),
            orchestrator: Mutex::default(),
            // A server recovers every task when it starts.
            recovers: AtomicBool::new(is_server),
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

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner before this one has ended: every task that is not paused goes on here, once. Its clients come first,
    /// with the environments of their tasks.
    pub fn take_over(&self) {
        if self.recovers.swap(true, Ordering::Relaxed) {
            return;
        }
        let Some(orchestrator) = self.orchestrator() else { return };
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
            tokio::time::sleep(ATTACH_WAIT).await;
            while let Err(error) = orchestrator.recover().await {
                tracing::warn!(%error, "the tasks of the owner before could not be recovered");
                tokio::time::sleep(RECOVER_AGAIN_AFTER).await;
            }
        });
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
        let mut tables = self.tables();
        for environment in tables.processes.values().chain(tables.derived.values()) {
            environment.secrets.add(secret);
        }
        tables.secrets.push(secret.clone());
    }

    /// The environment of a process, built from its variables, under `id`, with warnings for its user.
    pub(crate) async fn register(
        &self,
        id: Uuid,
        process: &TaskProcess,
        variables: BTreeMap<String, String>,
    ) -> Result<(Arc<ProcessEnvironment>, Vec<String>), ProjectError> {
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
        let built = Arc::new(built);
        self.insert(id, Arc::clone(&built))?;
        Ok((built, warnings))
    }

    /// Adds an environment that was built before.
    pub(crate) fn insert(
        &self,
        id: Uuid,
        environment: Arc<ProcessEnvironment>,
    ) -> Result<(), ProjectError> {
        let mut tables = self.tables();
        if tables.processes.len() >= PROCESSES_MAX && !tables.processes.contains_key(&id) {
            let message = format!("more than {PROCESSES_MAX} processes work here: try again later");
            return Err(ProjectError::Unavailable(message));
        }
        for secret in &tables.secrets {
            environment.secrets.add(secret);
        }
        tables.processes.insert(id, environment);
        Ok(())
    }

    /// The environment that a process has registered.
    pub(crate) fn registered(&self, id: Uuid) -> Option<Arc<ProcessEnvironment>> {
        self.tables().processes.get(&id).cloned()
    }

    /// Forgets an environment when its task has ended.
    pub(crate) fn forget_after(&self, id: Uuid, task: TaskId, here: &Orchestrator) {
        let (tables, orchestrator) = (Arc::downgrade(&self.tables), here.clone());
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        while watchers.try_join_next().is_some() {}
        watchers.spawn(async move {
            let mut events = orchestrator.follow(Some(task), Position(0));
            loop {
                match events.next().await {
                    Ok(event) if event.body.ends_task() => break,
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
            if let Some(tables) = tables.upgrade() {
                tables.lock().unwrap_or_else(PoisonError::into_inner).processes.remove(&id);
            }
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
        if let Some(known) = self.tables().derived.get(&process) {
            return Ok(Arc::clone(known));
        }
        let environment = Environment {
            current_dir: process.folder.clone().or_else(|| self.own.current_dir.clone()),
            warnings: Warnings::new(|_| {}),
            ..self.own.clone()
        };
        let mut built = self.build(&environment, &process)?;
        built.task = Arc::new(without_process(&built.task, &built.models));
        let built = Arc::new(built);
        let mut tables = self.tables();
        for secret in &tables.secrets {
            built.secrets.add(secret);
        }
        if tables.derived.len() >= DERIVED_MAX {
            tables.derived.clear();
        }
        tables.derived.insert(process, Arc::clone(&built));
        Ok(built)
    }

    /// The variables of another process that reaches the model of a task, with what was recorded with the task.
    fn of_another_process(
        &self,
        process: &TaskProcess,
        task: &TaskCreated,
    ) -> Result<Option<Arc<ProcessEnvironment>>, ProjectError> {
        let others: Vec<_> = self.tables().processes.values().cloned().collect();
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
        *self.tables() = Tables::default();
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
        if let Some(known) = process.id.and_then(|id| self.registered(id)) {
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
        self.insert(id, Arc::clone(&other)).map_err(|error| error.to_string())?;
        let orchestrator = self.orchestrator();
        if let Some(orchestrator) = orchestrator {
            let root = task.root.as_ref().unwrap_or(task_id);
            self.forget_after(id, root.clone(), &orchestrator);
        }
        Ok(Some(Arc::clone(&other.task)))
    }

    fn all(&self) -> Vec<Arc<TaskEnvironment>> {
        let tables = self.tables();
        let all = tables.processes.values().chain(tables.derived.values());
        all.map(|environment| Arc::clone(&environment.task)).collect()
    }
}
