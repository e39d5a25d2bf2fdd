//! The start of a task: here, at the owner of the journal, or at the server that the user named.

use std::time::{Duration, Instant};

use antiphon_api::{RunStarted, RunTarget, StartRun};
use antiphon_client::ClientError;
use antiphon_core::RawJson;
use antiphon_project::error::ProjectError;
use antiphon_project::{Principal, TaskFactory as _};

use super::{AttachedTask, ENDING_PAUSE, OWNER_WAIT, TaskPlace};
use crate::connection::{Connection, EndingOwner, ProjectServer};
use crate::server_task::create_task;

/// Pause before an owner that is about to end is asked again.
const PAUSE: Duration = Duration::from_millis(10);

impl AttachedTask<'_> {
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
    pub(super) async fn start_at_owner(
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
