//! A control request of this process: the owner of the journal executes it, or this process when there is none.

use std::sync::Arc;
use std::time::Duration;

use antiphon_project::agent_files::AgentFiles;
use antiphon_project::control_orders::{Execution, ProjectOrders};
use antiphon_project::environment::Environment;
use antiphon_project::error::ProjectError;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::project_agents::ProjectAgents;
use antiphon_project::project_task_factory::ProjectTaskFactory;
use antiphon_project::request_drop::DropResponse;
use antiphon_project::toolset::{PermissionOverrides, Toolset};
use antiphon_sqlite::SqliteJournal;
use tokio_util::sync::CancellationToken;

use crate::connection::Ownership;

/// A control request. It is dropped as a file in either case, so that its response is the same.
#[derive(Debug, Clone)]
pub struct ControlRequest {
    /// Name of the folder it is dropped into: who asks.
    pub requester: String,
    /// The request, as JSON.
    pub json: Vec<u8>,
    /// How long to wait for the response.
    pub timeout: Duration,
}

impl ControlRequest {
    /// Has the request executed. A process without another owner records what it asks for, and the next server runs it.
    pub async fn submit(self, environment: &Environment) -> Result<DropResponse, ProjectError> {
        let project = Project::find(environment)?;
        match Ownership::find(&project).await? {
            Ownership::Client(owner) => {
                // Before the file drop creates it: it is trusted at once.
                project.trusted_requests()?;
                owner.answer(owner.client.watch_requests().await)?;
                self.drop_in(&project).await
            }
            Ownership::Owner(journal) => self.execute(environment, &project, journal).await,
        }
    }

    async fn drop_in(self, project: &Project) -> Result<DropResponse, ProjectError> {
        let folder = project.trusted_requests()?;
        let request_drop = project.request_drop().get();
        request_drop.submit(folder, &self.requester, self.json, self.timeout).await
    }

    /// Executes the request in this process, because no other one owns the journal.
    async fn execute(
        self,
        environment: &Environment,
        project: &Project,
        journal: SqliteJournal,
    ) -> Result<DropResponse, ProjectError> {
        let settings = project.settings(environment)?;
        let toolset = Toolset::none();
        let rules = project.rules(&settings);
        let overrides = PermissionOverrides::default();
        let project_agents = ProjectAgents::of(project, &settings, &overrides, &toolset, &rules)?;
        let terminals = settings.terminals.keys().cloned().collect();
        let models = Models::new(settings);
        let prompts = Arc::clone(&project_agents.prompts);
        let orchestrator =
            project.recording_orchestrator_with(journal, models, toolset, &project_agents);
        let files = AgentFiles::new(&orchestrator, &project_agents.agents, project);
        let models = Arc::new(Models::new(project.settings(environment)?));
        let tasks = ProjectTaskFactory::new(&orchestrator, models, prompts, files.clone());
        let (tasks, execution) = (Arc::new(tasks), Execution::RecordOnly);
        let orders = ProjectOrders { orchestrator, tasks, files, terminals, execution };
        // Before the file drop creates it: it is trusted at once.
        project.trusted_requests()?;
        let stop = CancellationToken::new();
        let (root, trust) = (project.root().to_owned(), project.trust());
        let served =
            project.request_drop().get().serve(root, trust, Arc::new(orders), stop.clone());
        let answered = async {
            let response = self.drop_in(project).await;
            stop.cancel();
            response
        };
        let (served, response) = tokio::join!(served, answered);
        project_agents.shutdown().await;
        served.map_err(ProjectError::Failed)?;
        response
    }
}
