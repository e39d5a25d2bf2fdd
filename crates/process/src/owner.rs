//! This process as the owner of the project's journal: it runs the tasks of every process of the user here, and
//! serves them on the project's socket.

use std::sync::Arc;
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_interface_transport::{
    Interface, Keys, Listeners, ServerConfig, ServerDeps, ServerLimits, Token, serve_on_demand,
};
use antiphon_project::control_orders::{Execution, ProjectOrders};
use antiphon_project::environment::Environment;
use antiphon_project::project::{OwnerRole, Project, ProjectOwner};
use antiphon_project::server_files::ServerFiles;
use antiphon_project::settings::UserSettings;
use antiphon_sqlite::SqliteJournal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::socket_file::{SOCKET, bind};
use antiphon_project::error::ProjectError;

/// How long the answer to the last request of another process may take.
const SERVER_STOP_WAIT: Duration = Duration::from_secs(2);

/// How often, and after which pauses, the owner looks whether tasks work that were interrupted a moment ago.
const SETTLING_LOOKS: usize = 10;
const SETTLING_PAUSE: Duration = Duration::from_millis(2);

/// The owner of the project's journal.
pub struct Owner {
    /// The orchestrator and everything around it.
    pub project: ProjectOwner,
    interface: fn() -> Interface,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Owner {
    /// Sets up everything. No task runs yet, and nothing is served. `interface` is what other processes get on the
    /// project's socket.
    pub fn open(
        project: &Project,
        environment: &Environment,
        settings: UserSettings,
        journal: SqliteJournal,
        role: OwnerRole,
        interface: fn() -> Interface,
    ) -> Result<Self, ProjectError> {
        let project = ProjectOwner::open(project, environment, settings, journal, role)?;
        let (stop, serving) = (CancellationToken::new(), JoinSet::new());
        Ok(Self { project, interface, stop, serving })
    }

    /// Serves the project's socket from now on, unless it does. A fault is logged: the task of this process goes on
    /// without it.
    pub fn serve(&mut self, project: &Project) {
        if !self.serving.is_empty() {
            return;
        }
        let server = match self.server(project) {
            Ok(server) => server,
            Err(error) => {
                tracing::warn!("other commands cannot reach this process: {error}");
                return;
            }
        };
        self.carry_out_requests(project);
        let (folder, stop) = (project.state().to_owned(), self.stop.clone());
        self.serving.spawn(async move {
            let (socket, _file) = match bind(&folder.join(SOCKET)) {
                Ok(bound) => bound,
                Err(reason) => {
                    tracing::warn!("other commands cannot reach this process: {reason}");
                    return;
                }
            };
            let listeners = Listeners { socket: Some(socket), ..Listeners::default() };
            if let Err(error) = serve_on_demand(listeners, server, stop.cancelled_owned()).await {
                tracing::warn!(%error, "other commands cannot reach this process");
            }
        });
    }

    /// Carries out requests that are dropped as files, from when another command asks for it.
    fn carry_out_requests(&mut self, project: &Project) {
        let owner = &self.project;
        let terminals = owner.own.settings().terminals.keys().cloned().collect();
        let orders = ProjectOrders {
            orchestrator: owner.orchestrator.clone(),
            tasks: Arc::clone(&owner.tasks),
            files: owner.files.clone(),
            terminals,
            execution: Execution::Running,
        };
        let (root, trust) = (project.root().to_owned(), project.trust());
        let request_drop = project.request_drop().clone();
        let (wanted, stop) = (project.requests_wanted().clone(), self.stop.clone());
        self.serving.spawn(async move {
            tokio::select! {
                () = wanted.cancelled() => {}
                () = stop.cancelled() => return,
            }
            let served = request_drop.get().serve(root, trust, Arc::new(orders), stop).await;
            if let Err(reason) = served {
                tracing::warn!(%reason, "requests are not carried out");
            }
        });
    }

    /// What builds the server. Its token is there before the socket is.
    fn server(
        &self,
        project: &Project,
    ) -> Result<impl FnOnce() -> ServerConfig + Send + use<>, ProjectError> {
        let token = token(&ServerFiles::new(project.state()))?;
        self.project.environments.add_secret(token.secret());
        let deps = ServerDeps {
            orchestrator: self.project.orchestrator.clone(),
            task_factory: Arc::clone(&self.project.tasks) as _,
            token,
            hosts: Vec::new(),
            limits: ServerLimits { drain_wait: SERVER_STOP_WAIT, ..ServerLimits::default() },
        };
        let (keys, interface) = (Some(keys(project)?), self.interface);
        Ok(move || ServerConfig { keys, ..ServerConfig::new(deps, interface()) })
    }

    /// Returns when a task has ended or waits for a person, or when a server wants the journal.
    pub async fn rest(&self, task_id: &TaskId) {
        let leaving = self.project.environments.leaving();
        tokio::select! {
            // Its events say why it rests.
            rest = self.project.orchestrator.rest(task_id) => drop(rest),
            () = leaving.cancelled() => {}
        }
    }

    /// Waits a moment for tasks that have just ended or were interrupted: they give up their slots.
    pub(crate) async fn settle(&self) {
        for _ in 0..SETTLING_LOOKS {
            if !self.project.orchestrator.is_working() {
                return;
            }
            tokio::time::sleep(SETTLING_PAUSE).await;
        }
    }

    /// Frees the journal for the next owner at the first moment at which no call runs, so that no task waits for the
    /// call of another. A server that wants the journal gets it as soon as the calls that run now are recorded.
    pub async fn hand_over(self) {
        let leaving = self.project.environments.leaving();
        tokio::select! {
            () = self.project.orchestrator.until_quiet() => {}
            () = leaving.cancelled() => {}
        }
        self.project.orchestrator.hand_over().await;
        self.shutdown().await;
    }

    /// Stops everything, and frees the journal.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
        self.project.shutdown().await;
    }
}

/// The API keys of a project.
pub fn keys(project: &Project) -> Result<Keys, ProjectError> {
    Keys::new(project.keys()?).map_err(|error| ProjectError::Failed(error.to_string()))
}

/// The owner's token.
pub fn token(files: &ServerFiles) -> Result<Token, ProjectError> {
    Token::new(files.token()?).map_err(|error| {
        let path = files.token_path().display();
        ProjectError::InvalidInput(format!(
            "{path} holds no token: {error}; remove it for a new one"
        ))
    })
}
