//! The processes that have tasks here, with the environment of each. A process is kept while one of its leases is:
//! the start of a task takes a lease before anything else, and holds it until the task has ended. So the end of one
//! task takes nothing from another task of the same process, or from the start of the next one.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use antiphon_core::TaskId;
use secrecy::SecretString;
use uuid::Uuid;

use crate::error::ProjectError;
use crate::task::process_environment::ProcessEnvironment;
use crate::task::task_process::TaskProcess;

/// Processes whose variables are kept at a time. One more is refused.
const PROCESSES_MAX: usize = 4096;

/// Environments of processes that are gone, at most. One more forgets the others.
const DERIVED_MAX: usize = 64;

/// Where the variables of an environment are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The process gave them itself.
    Registered,
    /// Another process did: this one is gone. It replaces them if it comes back.
    Borrowed,
}

/// The processes that have tasks here.
#[derive(Clone, Default)]
pub(super) struct RegisteredProcesses(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    processes: HashMap<Uuid, RegisteredProcess>,
    /// By root task: the process that resumed it last. It replaces the one that the task was created by.
    resumed: HashMap<TaskId, Uuid>,
    derived: HashMap<TaskProcess, Arc<ProcessEnvironment>>,
    /// Redacted from the tool results of every environment.
    secrets: Vec<SecretString>,
}

struct RegisteredProcess {
    environment: Arc<ProcessEnvironment>,
    origin: Origin,
    /// Number of [`ProcessLease`].
    leases: usize,
    /// Tasks that hold a lease until they have ended.
    tasks: HashSet<TaskId>,
}

/// Keeps the environment of a process.
#[must_use]
pub(crate) struct ProcessLease {
    id: Uuid,
    environment: Arc<ProcessEnvironment>,
    tables: Weak<Mutex<Tables>>,
}

impl RegisteredProcesses {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the environment of a process. One that the process has registered before stays as it is.
    pub(super) fn insert(
        &self,
        id: Uuid,
        environment: Arc<ProcessEnvironment>,
        origin: Origin,
    ) -> Result<ProcessLease, ProjectError> {
        let mut tables = self.tables();
        if tables.processes.len() >= PROCESSES_MAX && !tables.processes.contains_key(&id) {
            let message = format!("more than {PROCESSES_MAX} processes work here: try again later");
            return Err(ProjectError::Unavailable(message));
        }
        for secret in &tables.secrets {
            environment.secrets.add(secret);
        }
        match tables.processes.entry(id) {
            Entry::Occupied(mut known) => {
                if known.get().origin == Origin::Borrowed {
                    known.get_mut().environment = environment;
                    known.get_mut().origin = origin;
                }
            }
            Entry::Vacant(absent) => {
                let tasks = HashSet::new();
                absent.insert(RegisteredProcess { environment, origin, leases: 0, tasks });
            }
        }
        let lease = self.lease_in(&mut tables, id);
        lease.ok_or_else(|| ProjectError::Failed("the process was not registered".to_owned()))
    }

    /// A lease of a process that has given its variables.
    pub(super) fn lease(&self, id: Uuid) -> Option<ProcessLease> {
        let mut tables = self.tables();
        let origin = tables.processes.get(&id)?.origin;
        (origin == Origin::Registered).then(|| self.lease_in(&mut tables, id)).flatten()
    }

    fn lease_in(&self, tables: &mut Tables, id: Uuid) -> Option<ProcessLease> {
        let known = tables.processes.get_mut(&id)?;
        known.leases += 1;
        let environment = Arc::clone(&known.environment);
        Some(ProcessLease { id, environment, tables: Arc::downgrade(&self.0) })
    }

    /// The environment of the process that resumed a task, or else of the one that created it.
    pub(super) fn of_task(
        &self,
        root: &TaskId,
        created_by: Option<Uuid>,
    ) -> Option<Arc<ProcessEnvironment>> {
        let tables = self.tables();
        let id = tables.resumed.get(root).copied().or(created_by)?;
        Some(Arc::clone(&tables.processes.get(&id)?.environment))
    }

    /// The environments of all processes.
    pub(super) fn all(&self) -> Vec<Arc<ProcessEnvironment>> {
        self.tables().processes.values().map(|known| Arc::clone(&known.environment)).collect()
    }

    /// From now on a task and its descendants work with the environment of this process.
    pub(super) fn resume_with(&self, root: TaskId, lease: &ProcessLease) {
        self.tables().resumed.insert(root, lease.id);
    }

    /// Whether a lease is the one that a task holds until it has ended. False when it holds another one already.
    pub(super) fn hold(&self, lease: &ProcessLease, task: &TaskId) -> bool {
        let mut tables = self.tables();
        tables.processes.get_mut(&lease.id).is_some_and(|known| known.tasks.insert(task.clone()))
    }

    /// Whether a process is known besides this one.
    pub(super) fn has_others(&self, own: Option<&Uuid>) -> bool {
        self.tables().processes.keys().any(|id| Some(id) != own)
    }

    /// Whether a task holds the lease of a process.
    pub(super) fn holds(&self, task: &TaskId) -> bool {
        self.tables().processes.values().any(|known| known.tasks.contains(task))
    }

    /// The task that held this lease has ended.
    pub(super) fn release(&self, lease: ProcessLease, task: &TaskId) {
        let mut tables = self.tables();
        if let Some(known) = tables.processes.get_mut(&lease.id) {
            known.tasks.remove(task);
        }
        if tables.resumed.get(task) == Some(&lease.id) {
            tables.resumed.remove(task);
        }
        // Dropping the lease locks them again.
        drop(tables);
        drop(lease);
    }

    /// The environment of a process that is gone, with this process's variables.
    pub(super) fn derived(&self, process: &TaskProcess) -> Option<Arc<ProcessEnvironment>> {
        self.tables().derived.get(process).cloned()
    }

    /// Keeps the environment of a process that is gone.
    pub(super) fn keep_derived(&self, process: TaskProcess, built: &Arc<ProcessEnvironment>) {
        let mut tables = self.tables();
        for secret in &tables.secrets {
            built.secrets.add(secret);
        }
        if tables.derived.len() >= DERIVED_MAX {
            tables.derived.clear();
        }
        tables.derived.insert(process, Arc::clone(built));
    }

    /// The environments of all processes, also of those that are gone.
    pub(super) fn all_with_derived(&self) -> Vec<Arc<ProcessEnvironment>> {
        let derived: Vec<_> = self.tables().derived.values().cloned().collect();
        self.all().into_iter().chain(derived).collect()
    }

    /// Redacts a secret from the tool results of every environment.
    pub(super) fn add_secret(&self, secret: &SecretString) {
        let mut tables = self.tables();
        let processes = tables.processes.values().map(|known| &known.environment);
        for environment in processes.chain(tables.derived.values()) {
            environment.secrets.add(secret);
        }
        tables.secrets.push(secret.clone());
    }

    /// Forgets every environment.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.tables());
        drop(all);
    }
}

impl ProcessLease {
    /// The environment of the process.
    pub(crate) fn environment(&self) -> &Arc<ProcessEnvironment> {
        &self.environment
    }
}

impl Clone for ProcessLease {
    fn clone(&self) -> Self {
        if let Some(tables) = self.tables.upgrade() {
            let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = tables.processes.get_mut(&self.id) {
                known.leases += 1;
            }
        }
        let (environment, tables) = (Arc::clone(&self.environment), Weak::clone(&self.tables));
        Self { id: self.id, environment, tables }
    }
}

impl Drop for ProcessLease {
    fn drop(&mut self) {
        let Some(tables) = self.tables.upgrade() else { return };
        let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
        // Absent once every environment is forgotten.
        let Some(known) = tables.processes.get_mut(&self.id) else { return };
        known.leases = known.leases.saturating_sub(1);
        let ended = if known.leases == 0 { tables.processes.remove(&self.id) } else { None };
        drop(tables);
        // It stops following files and may be the last user of MCP servers: without the lock.
        drop(ended);
    }
}
