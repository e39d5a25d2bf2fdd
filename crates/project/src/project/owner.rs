//! The process that holds the journal of a project and runs its tasks: those of its own user interface, and those
//! of every other process of the user.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::TaskId;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_runtime::Orchestrator;
use antiphon_sqlite::SqliteJournal;

use super::Project;
use super::own_tools::OwnTools;
use crate::agent_files::AgentFiles;
use crate::environment::Environment;
use crate::error::ProjectError;
use crate::notifications::Notifications;
use crate::settings::UserSettings;
use crate::task::environments::ProjectEnvironments;
use crate::task::process_environment::ProcessEnvironment;
use crate::task::project_task_factory::ProjectTaskFactory;
use crate::task::registered_processes::ProcessLease;
use crate::task::task_process::TaskProcess;
use crate::toolset::McpPool;

/// How long running tasks may take to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Unfinished tasks that an owner that is done looks at. Of more, the newest.
const LOOKED_AT_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Why a process owns a journal.
#[derive(Debug, Clone)]
pub enum OwnerRole {
    /// It is a server: tasks that are created through it work with these permissions.
    Server(TaskProcess),
    /// It has a task of its own. Everything else works with the settings alone.
    Run(TaskProcess),
    /// It resumes tasks of other processes. Those that say nothing else work with these permissions.
    Resume(TaskProcess),
}

impl OwnerRole {
    /// What the process gives to its tasks.
    pub fn process(&self) -> &TaskProcess {
        match self {
            Self::Server(process) | Self::Run(process) | Self::Resume(process) => process,
        }
    }
}

/// Everything that the owner of a journal needs to run tasks.
pub struct ProjectOwner {
    /// Runs the tasks.
    pub orchestrator: Orchestrator,
    /// What the tasks of other processes work with.
    pub environments: Arc<ProjectEnvironments>,
    /// What the owner's own tasks work with.
    pub own: Arc<ProcessEnvironment>,
    /// Builds tasks of requests.
    pub tasks: Arc<ProjectTaskFactory>,
    /// Changes agent definitions.
    pub files: AgentFiles,
    mcp: Arc<McpPool>,
    /// The environment of this process stays registered between its tasks.
    _own_lease: Option<ProcessLease>,
    tools: Option<Arc<OwnTools>>,
    notifications: Option<Notifications>,
}

impl ProjectOwner {
    /// Sets up everything. No task runs yet, and MCP servers connect meanwhile.
    pub fn open(
        project: &Project,
        environment: &Environment,
        settings: UserSettings,
        journal: SqliteJournal,
        role: OwnerRole,
    ) -> Result<Self, ProjectError> {
        settings.report_unused();
        let mcp = Arc::new(McpPool::new(project));
        let servers = mcp.servers(&settings);
        let warnings = settings.environment.warnings.clone();
        let tools = servers.clone().map(|servers| OwnTools::connect(servers, warnings));
        let process = role.process().clone();
        let is_server = matches!(role, OwnerRole::Server(_));
        let own = ProcessEnvironment::build(project, settings, &process, servers)?;
        let own = Arc::new(own.with_tools(tools.clone()));
        let project = Arc::new(project.clone());
        let environments = ProjectEnvironments::new(
            Arc::clone(&project),
            environment.clone(),
            role,
            Arc::clone(&mcp),
        );
        let environments = Arc::new(environments);
        let own_lease = process.id.map(|id| environments.insert_own(id, Arc::clone(&own)));
        let own_lease = own_lease.transpose()?;
        let orchestrator = project.owner_orchestrator(journal, &own, Arc::clone(&environments));
        environments.serve(&orchestrator);
        let notifications = Notifications::start(&project, own.settings(), &orchestrator);
        if !is_server {
            // A server recovers everything instead.
            orchestrator.deliver_cancels();
        }
        let files = AgentFiles::new(&orchestrator, &own.catalog, &project);
        let (prompts, for_files) = (Arc::clone(&own.prompts), files.clone());
        let models = Arc::clone(&own.models);
        let tasks = ProjectTaskFactory::new(&orchestrator, models, prompts, for_files);
        let tasks = tasks.with_environments(Arc::clone(&environments));
        let tasks = Arc::new(tasks.with_tools(tools.clone()));
        Ok(Self {
            orchestrator,
            environments,
            own,
            tasks,
            files,
            mcp,
            _own_lease: own_lease,
            tools,
            notifications,
        })
    }

    /// Whether the first task waits for MCP servers that have not listed their tools yet.
    pub fn waits_for_tools(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| !tools.are_ready())
    }

    /// Whether a task goes on here without a person or a client, besides those of a tree. When the journal cannot be
    /// read, it may.
    pub async fn has_tasks_left(&self, besides: Option<&TaskId>) -> bool {
        let works = match besides {
            Some(task_id) => self.orchestrator.is_working_besides(task_id).await,
            None => self.orchestrator.is_working(),
        };
        if works {
            return true;
        }
        // A process that was alone does not read all tasks at its end.
        if !self.environments.has_tasks_of_others() {
            return false;
        }
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: LOOKED_AT_MAX };
        let Ok(unfinished) = self.orchestrator.tasks(query).await else { return true };
        let others = unfinished.iter().filter(|task| besides != Some(&task.root));
        others.into_iter().any(|task| self.environments.continues(task))
    }

    /// Stops everything that still runs. The journal is free when the last clone of the orchestrator is gone.
    pub async fn shutdown(self) {
        if let Some(tools) = &self.tools {
            tools.close().await;
        }
        self.orchestrator.shutdown(SHUTDOWN_TIMEOUT).await;
        if let Some(notifications) = self.notifications {
            notifications.shutdown().await;
        }
        self.environments.close().await;
        self.mcp.close().await;
    }
}
