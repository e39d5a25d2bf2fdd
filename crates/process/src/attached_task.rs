//! The task of this process, wherever it runs: here, when this process owns the journal, or in the owner. When the
//! owner ends, this process takes its place, or is the client of the process that did. A task at a server that the
//! user named is started over the API and stays there.

use std::time::{Duration, Instant};

use antiphon_api::{RunStarted, RunTarget, StartRun};
use antiphon_client::{ClientError, RetryPolicy};
use antiphon_core::{Position, RawJson, TaskId};
use antiphon_interface_transport::Interface;
use antiphon_project::environment::Environment;
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::settings::UserSettings;
use antiphon_project::task_process::TaskProcess;
use antiphon_project::{Principal, TaskFactory as _};

use crate::connection::{ClientLock, Connection, EndingOwner, Ownership, ProjectServer};
use crate::owner::Owner;
use crate::owner_change::{KnownOwner, OwnerChange};
use crate::remaining_tasks::{NextOwnership, RemainingTasks};
use crate::server_task::create_task;
use crate::task_stream::TaskStream;
use antiphon_project::error::ProjectError;

/// Pause before an owner that is about to end is asked again.
const PAUSE: Duration = Duration::from_millis(10);

/// Pause before an owner that ends, and still answers, is asked again: its last calls may take minutes.
pub(crate) const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// Pause between two looks whether the owner is there, while nothing is asked of it.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// Pause before a server elsewhere that does not answer is asked again.
const SERVER_PAUSE: Duration = Duration::from_millis(500);

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

/// Who runs the task from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextOwner {
    /// One that goes on with the task; it may be this process, or the same one as before.
    Found,
    /// The owner ends, and still answers: its last calls run. It is to be asked again after a pause.
    Ending,
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

    /// Starts the task, or goes on with it. The journal has it when this returns. `key` makes it the same task for
    /// the next owner when this one ends meanwhile. Waits for an owner that ends as long as that answers.
    pub async fn start(
        &mut self,
        target: RunTarget,
        key: Option<&str>,
    ) -> Result<RunStarted, ProjectError> {
        let mut ending = EndingOwner::default();
        loop {
            if let Some(started) = self.start_at_owner(target.clone(), key).await? {
                return Ok(started);
            }
            if let (TaskPlace::Project(own), Some(text)) = (&self.place, ending.waits()) {
                own.environment.warnings.report(text);
            }
            tokio::time::sleep(ENDING_PAUSE).await;
            self.connect_again().await?;
        }
    }

    /// The same; `None` while the owner ends and still answers.
    async fn start_at_owner(
        &mut self,
        target: RunTarget,
        key: Option<&str>,
    ) -> Result<Option<RunStarted>, ProjectError> {
        let end = Instant::now() + OWNER_WAIT;
        loop {
            self.serve_before_tools();
            match self.try_start(target.clone(), key).await {
                Ok(started) => {
                    self.task_id = Some(started.task_id.clone());
                    // Beside the first request to the model.
                    self.serve();
                    return Ok(Some(started));
                }
                Err(failed) if self.owner.is_none() && failed.owner_ends => return Ok(None),
                Err(failed)
                    if failed.is_passing && self.owner.is_none() && Instant::now() < end =>
                {
                    tokio::time::sleep(PAUSE).await;
                    self.connect_again().await?;
                }
                Err(failed) => return Err(failed.error),
            }
        }
    }

    /// Serves the other processes before the task waits for tools.
    fn serve_before_tools(&mut self) {
        if self.owner.as_ref().is_some_and(|owner| owner.project.waits_for_tools()) {
            self.serve();
        }
    }

    async fn try_start(
        &self,
        target: RunTarget,
        key: Option<&str>,
    ) -> Result<RunStarted, FailedStart> {
        let own = match &self.place {
            TaskPlace::Project(own) => own,
            TaskPlace::NamedServer => return self.start_at_server(target, key).await,
        };
        let process = RawJson::of(own.role.process())
            .map_err(|error| FailedStart::from(ProjectError::Failed(error.to_string())))?;
        let version = antiphon_api::VERSION.to_owned();
        match (&self.owner, &self.connection) {
            (Some(owner), _) => {
                // For an id that is not registered yet.
                let variables = own.environment.texts();
                let run = StartRun { version, variables, process, target };
                let key = key.map(|key| Principal::default().idempotency_key("run", key));
                let started = owner.project.tasks.start_run(run, key).await;
                started.map_err(|error| ProjectError::from(error).into())
            }
            (None, Connection::Server(server, _)) => {
                let variables = own.environment.texts();
                let run = StartRun { version, variables, process, target };
                let started = server.client.start_run(&run, key).await;
                started.map_err(|error| FailedStart::of(server, error))
            }
            (None, Connection::Local(_)) => {
                Err(ProjectError::Failed("the journal has no owner".to_owned()).into())
            }
        }
    }

    /// Creates the task at the server that the user named, or goes on with it there.
    async fn start_at_server(
        &self,
        target: RunTarget,
        key: Option<&str>,
    ) -> Result<RunStarted, FailedStart> {
        let Connection::Server(server, reader) = &self.connection else {
            return Err(ProjectError::Failed("no server was named".to_owned()).into());
        };
        // Before the task exists, so that none of its events is missed.
        let after = reader.head().await.map_err(ProjectError::from)?;
        let warnings = Vec::new();
        let task_id = match target {
            RunTarget::New(request) => {
                let task = create_task(&request)?;
                let created = server.client.create_task(&task, key).await;
                let task_id = created.map_err(|error| FailedStart::of(server, error))?.task_id;
                return Ok(RunStarted { root: task_id.clone(), task_id, after, warnings });
            }
            RunTarget::Resume(task_id) => {
                let resumed = server.client.resume_task(&task_id).await;
                resumed.map_err(|error| FailedStart::of(server, error))?;
                task_id
            }
            RunTarget::Attach(task_id) => task_id,
        };
        let task = server.client.task(&task_id).await;
        let root = task.map_err(|error| FailedStart::of(server, error))?.summary.root;
        Ok(RunStarted { task_id, root, after, warnings })
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

    /// Goes on with the task after its owner has ended, or the connection to it broke.
    pub async fn attach_again(&mut self, task_id: &TaskId) -> Result<NextOwner, ProjectError> {
        self.connect_again().await?;
        let target = RunTarget::Attach(task_id.clone());
        Ok(match self.start_at_owner(target, None).await? {
            None => NextOwner::Ending,
            Some(_) => NextOwner::Found,
        })
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

    /// Returns when the owner of the journal, another process, has ended. Cancel safe.
    pub async fn owner_lost(&self) {
        let TaskPlace::Project(own) = &self.place else { return std::future::pending().await };
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            if Ownership::owner_id(own.project).is_none() && self.has_lost_owner().await {
                return;
            }
        }
    }

    /// Whether another process owns the journal, or did, and does not answer any more.
    pub async fn has_lost_owner(&self) -> bool {
        match &self.connection {
            Connection::Server(server, _) => !server.client.is_alive().await,
            Connection::Local(_) => self.owner.is_none(),
        }
    }

    /// Goes on with the next owner, or as the next owner, when the owner does not answer any more. False when it
    /// answers, or when this process is the owner.
    pub async fn find_next_owner(&mut self) -> Result<bool, ProjectError> {
        let is_lost = self.has_lost_owner().await;
        if is_lost {
            self.connect_again().await?;
        }
        Ok(is_lost)
    }

    async fn connect_again(&mut self) -> Result<(), ProjectError> {
        if self.owner.is_some() {
            return Ok(());
        }
        let own = match &mut self.place {
            TaskPlace::Project(own) => own,
            TaskPlace::NamedServer => return self.wait_for_server().await,
        };
        let (connection, owner) = connect(own).await?;
        (self.connection, self.owner) = (connection, owner);
        self.hold_client_lock();
        self.listen();
        // The other clients wait for it, and bring the environments of their tasks.
        self.serve();
        if let Some(owner) = &mut self.owner {
            owner.project.environments.take_over();
        }
        Ok(())
    }

    /// Waits until the server that the user named answers again.
    async fn wait_for_server(&self) -> Result<(), ProjectError> {
        let Connection::Server(server, _) = &self.connection else { return Ok(()) };
        let end = Instant::now() + OWNER_WAIT;
        while !server.client.is_alive().await {
            if Instant::now() >= end {
                return Err(ProjectError::Unavailable(format!(
                    "{} does not answer: start `antiphon serve` there. What it accepted is in its journal",
                    server.client.endpoint()
                )));
            }
            tokio::time::sleep(SERVER_PAUSE).await;
        }
        Ok(())
    }
}

/// Whether a stream of a server is opened again by itself: another process of the project may own the journal next.
fn retry_of(server: &ProjectServer) -> RetryPolicy {
    if server.is_named() { RetryPolicy::default() } else { RetryPolicy::NEVER }
}

/// A task that was not started.
struct FailedStart {
    error: ProjectError,
    /// Whether another owner may start it.
    is_passing: bool,
    /// Whether the owner said that it ends.
    owner_ends: bool,
}

impl From<ProjectError> for FailedStart {
    fn from(error: ProjectError) -> Self {
        Self { error, is_passing: false, owner_ends: false }
    }
}

impl FailedStart {
    fn of(server: &ProjectServer, error: ClientError) -> Self {
        // A server of an earlier version has no such route.
        let is_earlier = matches!(&error, ClientError::Refused { status: 404 | 405, error }
            if error.message.contains("no such route"));
        if is_earlier {
            return ProjectError::Unavailable(format!(
                "an earlier version of Antiphon works on the tasks of this project at {}: wait until it has ended, or \
                 use that version",
                server.client.endpoint()
            ))
            .into();
        }
        let (is_transient, owner_ends) = (error.is_transient(), error.is_stopping());
        let error = server.project_error(error);
        let is_unavailable =
            matches!(error, ProjectError::Unavailable(_) | ProjectError::OwnerEnds(_));
        Self { is_passing: is_transient && is_unavailable, owner_ends, error }
    }
}

/// Takes the journal, or connects to its owner.
async fn connect(own: &mut OwnTask<'_>) -> Result<(Connection, Option<Owner>), ProjectError> {
    let OwnTask { project, environment, settings, role, interface } = own;
    if let Some(owner) = Ownership::stopped_owner(project) {
        environment.warnings.report(&format!(
            "process {owner} works on the tasks of this project, and it is stopped: waits for it; continue it with `fg` \
             in its terminal, or with `kill -CONT {owner}`"
        ));
    }
    match Ownership::find(project).await? {
        Ownership::Client(server) => Ok((Connection::of_owner(server, project)?, None)),
        Ownership::Owner(journal) => {
            let settings = match settings.take() {
                Some(settings) => settings,
                None => project.settings(environment)?,
            };
            let role = role.clone();
            let owner = Owner::open(project, environment, settings, journal, role, *interface)?;
            let connection = Connection::Local(owner.project.orchestrator.clone());
            Ok((connection, Some(owner)))
        }
    }
}
