//! This process in a project until it ends, with any number of tasks: an editor's agent, a server on
//! standard input and output.
//!
//! Everything goes through the socket of the journal's owner, also when this process is the owner. So there is one
//! way for every request, and the end of any owner looks the same: the next request finds the next owner, or makes
//! this process the next one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_api::{JournalEventQuery, RunStarted, RunTarget, StartRun};
use antiphon_client::{LiveStream, RetryPolicy, StreamItem};
use antiphon_core::{Position, RawJson, TaskId};
use antiphon_interface_transport::Interface;
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::project::{OwnerRole, Project};
use antiphon_project::task_process::TaskProcess;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::attached_task::ENDING_PAUSE;
use crate::connection::{Connection, Ownership, WAITS_FOR_OWNER};
use crate::owner::Owner;
use crate::remaining_tasks::{NextOwnership, RemainingTasks};

/// Pause before an owner that is about to end is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a task may be without an owner.
const OWNER_WAIT: Duration = Duration::from_secs(30);

/// This process in a project.
#[derive(Clone)]
pub struct Participant {
    shared: Arc<Shared>,
}

struct Shared {
    project: Project,
    environment: Environment,
    interface: fn() -> Interface,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Present when this process owns the journal.
    owner: Option<Owner>,
    /// What it is as the owner. Present once it was.
    role: Option<OwnerRole>,
    /// Whether there was an owner before.
    was_connected: bool,
    /// Frees the journal when a server wants it.
    leaving: JoinSet<()>,
}

impl Participant {
    /// Nothing is opened yet. `interface` is what other processes get on the project's socket while this one owns
    /// the journal.
    pub fn new(project: Project, environment: Environment, interface: fn() -> Interface) -> Self {
        let state = Mutex::default();
        Self { shared: Arc::new(Shared { project, environment, interface, state }) }
    }

    /// The project.
    pub fn project(&self) -> &Project {
        &self.shared.project
    }

    /// What the process was started with, in the folder of the project.
    pub fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// The owner of the journal, which may be this process.
    pub async fn connection(&self) -> Result<Connection, ProjectError> {
        let mut state = self.shared.state.lock().await;
        if let Some(Connection::Server(server, _)) = &state.connection
            && server.client.is_alive().await
        {
            return state.connection.clone().ok_or_else(no_owner);
        }
        state.connection = None;
        let connection = self.find(&mut state).await?;
        state.connection = Some(connection.clone());
        state.was_connected = true;
        Ok(connection)
    }

    async fn find(&self, state: &mut State) -> Result<Connection, ProjectError> {
        let Shared { project, environment, interface, .. } = &*self.shared;
        let journal = match Ownership::find(project).await? {
            Ownership::Client(server) => return Connection::of_owner(server, project),
            Ownership::Owner(journal) => journal,
        };
        let settings = project.settings(environment)?;
        let folder = environment.current_dir.clone();
        let process = TaskProcess { id: Some(Uuid::new_v4()), folder, ..TaskProcess::default() };
        let role = OwnerRole::Run(process.at_providers_of(&settings));
        state.role = Some(role.clone());
        let mut owner = Owner::open(project, environment, settings, journal, role, *interface)?;
        owner.serve(project);
        if state.was_connected {
            // Tasks of the owner before go on here.
            owner.project.environments.take_over();
        }
        let leaving = owner.project.environments.leaving();
        state.owner = Some(owner);
        state.leaving.spawn(free_for_server(Arc::downgrade(&self.shared), leaving));
        match Ownership::find(project).await? {
            Ownership::Client(server) => Connection::of_owner(server, project),
            Ownership::Owner(_) => Err(no_owner()),
        }
    }

    /// Starts a task, or goes on with one, with what `process` gives to it. The journal has it when this returns.
    /// `key` makes it the same task for the next owner when this one ends meanwhile.
    pub async fn start(
        &self,
        process: &TaskProcess,
        target: RunTarget,
        key: Option<&str>,
    ) -> Result<RunStarted, ProjectError> {
        let run = StartRun {
            version: antiphon_api::VERSION.to_owned(),
            variables: self.shared.environment.texts(),
            process: RawJson::of(process)
                .map_err(|error| ProjectError::Failed(error.to_string()))?,
            target,
        };
        let mut end = Instant::now() + OWNER_WAIT;
        loop {
            let Connection::Server(server, _) = self.connection().await? else {
                return Err(no_owner());
            };
            match server.client.start_run(&run, key).await {
                Ok(started) => return Ok(started),
                // Its last calls may take minutes, and it answers meanwhile.
                Err(error) if error.is_stopping() => {
                    tracing::debug!("{WAITS_FOR_OWNER}");
                    end = Instant::now() + OWNER_WAIT;
                    tokio::time::sleep(ENDING_PAUSE).await;
                }
                Err(error) if error.is_transient() && Instant::now() < end => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(server.project_error(error)),
            }
        }
    }

    /// The events of a task of this process and its descendants behind a position, and deltas, across owners. The
    /// next owner gets the task with what `process` gives to it.
    pub fn follow(&self, process: TaskProcess, started: &RunStarted) -> FollowedTask {
        self.followed(Some(process), started)
    }

    /// The same of a task that this process gives nothing to, such as the task of another process.
    pub fn watch(&self, started: &RunStarted) -> FollowedTask {
        self.followed(None, started)
    }

    fn followed(&self, process: Option<TaskProcess>, started: &RunStarted) -> FollowedTask {
        FollowedTask {
            participant: self.clone(),
            process,
            task_id: started.task_id.clone(),
            root: started.root.clone(),
            position: started.after,
            stream: None,
            is_first: true,
        }
    }

    /// Ends the part of this process: calls that run here end and are recorded, then the journal is free.
    pub async fn leave(&self) {
        let mut state = self.shared.state.lock().await;
        state.connection = None;
        state.leaving.abort_all();
        if let Some(owner) = state.owner.take() {
            owner.hand_over().await;
        }
    }

    /// The same, when it was not told to stop. Returns the tasks of other processes that have to go on here.
    pub async fn into_remaining(self) -> Option<RemainingTasks> {
        let mut state = self.shared.state.lock().await;
        state.connection = None;
        state.leaving.abort_all();
        let owner = state.owner.take()?;
        // What was interrupted gives up its slot.
        owner.settle().await;
        if !owner.project.has_tasks_left(None).await {
            owner.hand_over().await;
            return None;
        }
        let Shared { project, environment, interface, .. } = &*self.shared;
        let again = NextOwnership {
            project: project.clone(),
            environment: environment.clone(),
            role: state.role.take()?,
            interface: *interface,
        };
        Some(RemainingTasks::new(owner, again, None))
    }
}

/// Frees the journal when a server wants it. Requests wait meanwhile, and go to the server then.
async fn free_for_server(shared: std::sync::Weak<Shared>, wanted: CancellationToken) {
    wanted.cancelled().await;
    let Some(shared) = shared.upgrade() else { return };
    let mut state = shared.state.lock().await;
    state.connection = None;
    if let Some(owner) = state.owner.take() {
        owner.hand_over().await;
    }
}

/// The events of a task and its descendants, and deltas, across owners of the journal.
pub struct FollowedTask {
    participant: Participant,
    /// What this process gives to the task; absent for a task of another process.
    process: Option<TaskProcess>,
    task_id: TaskId,
    root: TaskId,
    position: Position,
    stream: Option<LiveStream>,
    /// No owner was followed yet.
    is_first: bool,
}

impl FollowedTask {
    /// The next event or delta. Each event comes once; deltas may be missing after an owner has ended. Cancel safe.
    pub async fn next(&mut self) -> Result<StreamItem, ProjectError> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let stream = self.open().await?;
                    self.is_first = false;
                    self.stream.insert(stream)
                }
            };
            match stream.next().await {
                Ok(Some(StreamItem::Event(event))) if event.position <= self.position => {}
                Ok(Some(StreamItem::Event(event))) => {
                    self.position = event.position;
                    return Ok(StreamItem::Event(event));
                }
                Ok(Some(delta @ StreamItem::Delta(_))) => return Ok(delta),
                Ok(None) => self.stream = None,
                Err(error) => {
                    tracing::debug!(%error, "looks for the owner of the journal");
                    self.stream = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn open(&self) -> Result<LiveStream, ProjectError> {
        if let Some(process) = self.process.as_ref().filter(|_| !self.is_first) {
            let target = RunTarget::Attach(self.task_id.clone());
            self.participant.start(process, target, None).await?;
        }
        let Connection::Server(server, _) = self.participant.connection().await? else {
            return Err(no_owner());
        };
        let (root, after) = (Some(self.root.clone()), Some(self.position));
        let query = JournalEventQuery { root, after, deltas: true, ..JournalEventQuery::default() };
        Ok(server.client.live_journal_events(query, RetryPolicy::NEVER))
    }
}

fn no_owner() -> ProjectError {
    ProjectError::Unavailable("the journal has no owner: try again".to_owned())
}
