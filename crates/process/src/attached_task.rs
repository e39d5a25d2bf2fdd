//! The task of this process, wherever it runs: here, when this process owns the journal, or in the owner. When the
//! owner ends, this process takes its place, or is the client of the process that did. A task at a server that the
//! user named is started over the API and stays there.

mod next_owner;
mod start;

use std::time::Duration;

use antiphon_client::RetryPolicy;
use antiphon_core::{Position, TaskId};
use antiphon_interface_transport::Interface;
use antiphon_project::environment::Environment;
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::settings::UserSettings;
use antiphon_project::task_process::TaskProcess;

use crate::connection::{ClientLock, Connection, ProjectServer};
use crate::owner::Owner;
use crate::owner_change::{KnownOwner, OwnerChange};
use crate::remaining_tasks::{NextOwnership, RemainingTasks};
use crate::task_stream::TaskStream;
use antiphon_project::error::ProjectError;
use next_owner::connect;

pub use next_owner::NextOwner;

/// Pause before an owner that ends, and still answers, is asked again: its last calls may take minutes.
pub(crate) const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// How long a task may be without an owner, or a server elsewhere may be away.
const OWNER_WAIT: Duration = Duration::from_secs(30);

/// What a process gives to its task.
pub struct OwnTask<'a> {
    /// The project that the task belongs to.
    pub project: &'a Project,
    /// What the process was started with.
    pub environment: &'a Environment,
    /// What this process has read of the settings. They are read again when it takes the journal later.
    pub settings: Option<UserSettings>,
    /// What this process is when it owns the journal, with folder, permissions and approvals of the task.
    pub role: OwnerRole,
    /// What this process serves on the project's socket when it owns the journal.
    pub interface: fn() -> Interface,
}

/// Where the task may run.
enum TaskPlace<'a> {
    /// In the project of this process: here, or in the process that owns its journal.
    Project(Box<OwnTask<'a>>),
    /// At the server that the user named, which stays its owner.
    NamedServer,
}

/// The task of this process, wherever it runs.
pub struct AttachedTask<'a> {
    place: TaskPlace<'a>,
    connection: Connection,
    /// Present when this process owns the journal.
    owner: Option<Owner>,
    /// Present when this process takes the journal after its owner.
    client: Option<ClientLock>,
    /// Whose end the user does not know yet.
    known_owner: KnownOwner,
    /// Deltas from before the task was started.
    deltas: Option<TaskStream>,
    /// The user wants this process to end at once.
    pub ends_at_once: bool,
    /// The task of this process, once it is started.
    task_id: Option<TaskId>,
    /// The task that goes on when this process has left its terminal.
    detached: Option<TaskId>,
}

impl<'a> AttachedTask<'a> {
    /// Takes the journal, or connects to its owner. No task is started yet.
    pub async fn open(mut own: OwnTask<'a>) -> Result<Self, ProjectError> {
        let (connection, owner) = connect(&mut own).await?;
        let known_owner = KnownOwner::new(own.project, owner.is_some());
        let (deltas, task_id, place) = (None, None, TaskPlace::Project(Box::new(own)));
        let mut task = Self {
            place,
            connection,
            owner,
            client: None,
            known_owner,
            deltas,
            ends_at_once: false,
            task_id,
            detached: None,
        };
        task.hold_client_lock();
        task.listen();
        Ok(task)
    }

    /// A task at the server that the user named. Nothing is sent yet.
    pub fn at_server(server: &ProjectServer) -> Result<Self, ProjectError> {
        let unnamed = || ProjectError::Failed("the server was not named with --server".to_owned());
        let connection = Connection::named(server).ok_or_else(unnamed)?;
        Ok(Self {
            place: TaskPlace::NamedServer,
            connection,
            owner: None,
            client: None,
            known_owner: KnownOwner::none(),
            deltas: None,
            ends_at_once: false,
            task_id: None,
            detached: None,
        })
    }

    /// Where commands about the task go.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether this process owns the journal.
    pub fn is_owner(&self) -> bool {
        self.owner.is_some()
    }

    /// Whether tasks of other processes work here. The descendants of the own task are not among them.
    pub async fn works_for_others(&self) -> bool {
        let Some(owner) = &self.owner else { return false };
        let orchestrator = &owner.project.orchestrator;
        match &self.task_id {
            Some(task_id) => orchestrator.is_working_besides(task_id).await,
            None => orchestrator.is_working(),
        }
    }

    /// Lets a task of this process go on, when it has left its terminal, until the task has ended or waits for a person.
    pub fn detach(&mut self, task_id: TaskId) {
        self.detached = Some(task_id);
    }

    /// Whether a task goes on without a terminal.
    pub fn is_detached(&self) -> bool {
        self.detached.is_some()
    }

    /// Whether tasks go on here when the own one is done, or when it goes on without a terminal.
    async fn has_tasks_left(&self) -> bool {
        let Some(owner) = &self.owner else { return false };
        self.is_detached() || owner.project.has_tasks_left(self.task_id.as_ref()).await
    }

    /// Ends the part of this process, and frees the journal. Returns the tasks of other processes that have to go on
    /// here: the others are clients of this process, or they have ended and no other process goes on.
    pub async fn into_remaining(self) -> Option<RemainingTasks> {
        let tasks_left = self.has_tasks_left().await;
        let Self { place: TaskPlace::Project(own), owner, connection, client, detached, .. } = self
        else {
            return None;
        };
        let OwnTask { project, environment, role, interface, .. } = *own;
        let (project, environment) = (project.clone(), environment.clone());
        let again = NextOwnership { project, environment, role, interface };
        match owner {
            Some(owner) if tasks_left => Some(RemainingTasks::new(owner, again, detached)),
            Some(owner) => {
                owner.shutdown().await;
                None
            }
            None => {
                drop(client);
                let Connection::Server(server, _) = connection else { return None };
                if server.client.is_alive().await {
                    return None;
                }
                let taken = again.take_if_left().await;
                let owner = taken.inspect_err(|error| {
                    tracing::warn!(%error, "tasks of other processes may wait for the next process");
                });
                owner.ok()?.map(|owner| RemainingTasks::new(owner, again, None))
            }
        }
    }

    /// Ends everything that runs here, and frees the journal.
    pub async fn stop(self) {
        if let Some(owner) = self.owner {
            owner.shutdown().await;
        }
    }

    /// Returns when a server wants the journal that this process owns.
    pub async fn asked_to_leave(&self) {
        match &self.owner {
            Some(owner) => owner.project.environments.leaving().cancelled_owned().await,
            None => std::future::pending().await,
        }
    }

    /// Lets every call that runs here end and be recorded.
    pub fn hand_over(&self) -> impl Future<Output = ()> + Send + 'static {
        let orchestrator = self.owner.as_ref().map(|owner| owner.project.orchestrator.clone());
        async move {
            if let Some(orchestrator) = orchestrator {
                orchestrator.hand_over().await;
            }
        }
    }

    /// Frees the journal. This process is a client from now on.
    pub async fn leave(&mut self) {
        let TaskPlace::Project(own) = &self.place else { return };
        let nothing = Connection::reader_only(own.project);
        let connection = nothing.map(|reader| std::mem::replace(&mut self.connection, reader));
        drop(connection);
        self.deltas = None;
        if let Some(owner) = self.owner.take() {
            owner.shutdown().await;
        }
        self.hold_client_lock();
    }

    /// The next task is started with this, under an id that no earlier task has: what those got stays theirs.
    pub fn set_process(&mut self, process: TaskProcess) {
        if let TaskPlace::Project(own) = &mut self.place {
            own.role = OwnerRole::Run(process);
        }
    }

    /// Tells the owner that this process goes on after it, unless this process is the owner.
    fn hold_client_lock(&mut self) {
        let TaskPlace::Project(own) = &self.place else { return };
        if self.owner.is_some() {
            self.client = None;
        } else if self.client.is_none() {
            self.client = ClientLock::hold(own.project);
        }
    }

    /// Subscribes before the task starts, so that no delta is missed.
    fn listen(&mut self) {
        self.deltas = match &self.connection {
            Connection::Local(orchestrator) => Some(TaskStream::local(orchestrator)),
            Connection::Server(..) => None,
        };
    }

    /// The events of the task and its descendants behind a position, and deltas.
    pub fn stream(&mut self, root: &TaskId, after: Position) -> TaskStream {
        match (&self.connection, self.deltas.take()) {
            (Connection::Local(orchestrator), Some(stream)) => {
                stream.following(orchestrator, after)
            }
            (Connection::Local(orchestrator), None) => {
                TaskStream::local(orchestrator).following(orchestrator, after)
            }
            (Connection::Server(server, _), _) => {
                TaskStream::remote(&server.client, Some(root), after, retry_of(server))
            }
        }
    }

    /// The events of all tasks behind a position, and deltas.
    pub fn journal_stream(&mut self, after: Position) -> TaskStream {
        self.deltas = None;
        match &self.connection {
            Connection::Local(orchestrator) => {
                TaskStream::local(orchestrator).following(orchestrator, after)
            }
            Connection::Server(server, _) => {
                TaskStream::remote(&server.client, None, after, retry_of(server))
            }
        }
    }

    /// Serves the other processes from now on, if this one owns the journal.
    pub fn serve(&mut self) {
        if let (TaskPlace::Project(own), Some(owner)) = (&self.place, &mut self.owner) {
            owner.serve(own.project);
        }
    }

    /// The process that owns the journal now, when the user was told of another one: once for each owner.
    pub fn take_owner_change(&mut self) -> Option<OwnerChange> {
        let TaskPlace::Project(own) = &self.place else { return None };
        self.known_owner.take_change(own.project, self.owner.is_some())
    }

    /// Says on standard error that another process owns the journal now.
    pub(crate) fn report_owner_change(&mut self) {
        let change = self.take_owner_change();
        if let (TaskPlace::Project(own), Some(change)) = (&self.place, change) {
            own.environment.warnings.report(&change.text());
        }
    }
}

/// Whether a stream of a server is opened again by itself: another process of the project may own the journal next.
fn retry_of(server: &ProjectServer) -> RetryPolicy {
    if server.is_named() { RetryPolicy::default() } else { RetryPolicy::NEVER }
}
