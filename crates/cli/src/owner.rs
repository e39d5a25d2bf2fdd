//! This process as the owner of the project's journal: it runs the tasks of every process of the user here, and
//! serves them on the project's socket.

use std::sync::Arc;
use std::time::Duration;

use antiphon_file_drop::watch;
use antiphon_interface_transport::{
    Interface, Keys, Limits, Listeners, ServerConfig, ServerDeps, Token, serve_on_demand,
};
use antiphon_project::control_orders::{Execution, ProjectOrders, drop_settings};
use antiphon_project::environment::Environment;
use antiphon_project::project::{OwnerRole, Project, ProjectOwner};
use antiphon_project::server_files::ServerFiles;
use antiphon_project::settings::UserSettings;
use antiphon_sqlite::SqliteJournal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::socket_file::{SOCKET, bind};

/// How long the answer to the last request of another process may take.
const SERVER_STOP_WAIT: Duration = Duration::from_secs(2);

/// The owner of the project's journal.
pub(crate) struct Owner {
    pub(crate) project: ProjectOwner,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Owner {
    /// Sets up everything. No task runs yet, and nothing is served.
    pub(crate) async fn open(
        project: &Project,
        environment: &Environment,
        settings: UserSettings,
        journal: SqliteJournal,
        role: OwnerRole,
    ) -> Result<Self, Failure> {
        let project = ProjectOwner::open(project, environment, settings, journal, role).await?;
        Ok(Self { project, stop: CancellationToken::new(), serving: JoinSet::new() })
    }

    /// Serves the project's socket from now on, unless it does. A fault is logged: the task of this process goes on
    /// without it.
    pub(crate) fn serve(&mut self, project: &Project) {
        if !self.serving.is_empty() {
            return;
        }
        let server = match self.server(project) {
            Ok(server) => server,
            Err(failure) => {
                tracing::warn!("other commands cannot reach this process: {failure}");
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
        let (root, settings) = (project.root().to_owned(), drop_settings(&project.trust()));
        let (wanted, stop) = (project.requests_wanted().clone(), self.stop.clone());
        self.serving.spawn(async move {
            tokio::select! {
                () = wanted.cancelled() => {}
                () = stop.cancelled() => return,
            }
            if let Err(error) = watch(&root, settings, Arc::new(orders), stop).await {
                tracing::warn!(%error, "requests are not carried out");
            }
        });
    }

    /// What builds the server. Its token is there before the socket is.
    fn server(
        &self,
        project: &Project,
    ) -> Result<impl FnOnce() -> ServerConfig + Send + use<>, Failure> {
        let token = token(&ServerFiles::new(project.state()))?;
        self.project.environments.add_secret(token.secret());
        let deps = ServerDeps {
            orchestrator: self.project.orchestrator.clone(),
            task_factory: Arc::clone(&self.project.tasks) as _,
            token,
            hosts: Vec::new(),
            limits: Limits { drain_wait: SERVER_STOP_WAIT, ..Limits::default() },
        };
        let keys = Some(keys(project)?);
        Ok(move || ServerConfig { deps, keys, telemetry: None, interface: interface() })
    }

    /// Whether tasks of other processes work here. The own task of this process has ended or is suspended.
    pub(crate) fn is_working(&self) -> bool {
        self.project.orchestrator.is_working()
    }

    /// Lets every call that runs end and be recorded, then frees the journal for the next owner.
    pub(crate) async fn hand_over(self) {
        self.project.orchestrator.hand_over().await;
        self.shutdown().await;
    }

    /// Stops everything, and frees the journal.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        while self.serving.join_next().await.is_some() {}
        self.project.shutdown().await;
    }
}

/// All HTTP interfaces of an owner that is no server.
fn interface() -> Interface {
    antiphon_http::interface(None).merge(antiphon_openai_api::interface())
}

/// The API keys of a project.
pub(crate) fn keys(project: &Project) -> Result<Keys, Failure> {
    Keys::new(project.keys()?).map_err(|error| Failure::failed(error.to_string()))
}

/// The owner's token.
pub(crate) fn token(files: &ServerFiles) -> Result<Token, Failure> {
    Token::new(files.token()?).map_err(|error| {
        let path = files.token_path().display();
        Failure::usage(format!("{path} holds no token: {error}; remove it for a new one"))
    })
}
