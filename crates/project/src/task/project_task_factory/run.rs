//! Tasks of processes of the user: of this one, and of those that are clients of it.

use antiphon_api::{RunStarted, RunTarget, StartRun};
use antiphon_core::port::IdempotencyKey;
use antiphon_core::{Position, TaskId};
use antiphon_runtime::{NewTask, Orchestrator, OrchestratorError};

use super::ProjectTaskFactory;
use crate::error::ProjectError;
use crate::models::Route;
use crate::task::environments::ProjectEnvironments;
use crate::task::process_environment::ProcessEnvironment;
use crate::task::registered_processes::ProcessLease;
use crate::task::run_request::RunRequest;
use crate::task::task_process::TaskProcess;

/// Starts the task of a process, or goes on with it.
pub(super) async fn start(
    factory: &ProjectTaskFactory,
    run: StartRun,
    key: Option<IdempotencyKey>,
) -> Result<RunStarted, ProjectError> {
    let invalid = |reason: String| ProjectError::InvalidInput(reason);
    let refused = || invalid("this process runs no tasks of other processes".to_owned());
    let environments = factory.environments.as_ref().ok_or_else(refused)?;
    let process: TaskProcess = run.process.to().map_err(|error| invalid(error.to_string()))?;
    let id = process.id.ok_or_else(|| invalid("the process has no id".to_owned()))?;
    // Held until the task has ended: the end of another task of this process changes nothing for this one.
    let (lease, warnings) = match environments.lease(id) {
        Some(known) => (known, Vec::new()),
        None => environments.register(id, &process, run.variables).await?,
    };
    let orchestrator = &factory.orchestrator;
    // Tasks of processes that are gone may have waited for a key of this one.
    orchestrator.retry_missing_models().await;
    let started = match run.target {
        RunTarget::New(request) => {
            lease.environment().tools_ready().await;
            let request = request.to().map_err(|error| invalid(error.to_string()))?;
            create(orchestrator, lease.environment(), request, key).await?
        }
        RunTarget::Resume(task_id) => {
            lease.environment().tools_ready().await;
            bind(environments, orchestrator, &lease, &process, &task_id).await?;
            let after = orchestrator.head().await?;
            orchestrator.resume(&task_id).await?;
            started(orchestrator, task_id, after).await?
        }
        RunTarget::Attach(task_id) => {
            environments.take_over();
            bind(environments, orchestrator, &lease, &process, &task_id).await?;
            start_again(orchestrator, &task_id).await?;
            started(orchestrator, task_id, Position(0)).await?
        }
    };
    environments.release_when_ended(lease, &started.task_id, orchestrator);
    Ok(RunStarted { warnings, ..started })
}

async fn create(
    orchestrator: &Orchestrator,
    environment: &ProcessEnvironment,
    request: RunRequest,
    key: Option<IdempotencyKey>,
) -> Result<RunStarted, ProjectError> {
    let task = environment.task(orchestrator, request).await?;
    let accepted = orchestrator.invoke(NewTask { key, ..task }).await?;
    if accepted.deduplicated {
        // The owner that had accepted it may have ended.
        start_again(orchestrator, &accepted.task_id).await?;
    }
    let first = orchestrator.follow(Some(accepted.task_id.clone()), Position(0)).next().await;
    let first = first.map_err(|error| ProjectError::Unavailable(error.to_string()))?;
    let after = Position(first.position.0.saturating_sub(1));
    started(orchestrator, accepted.task_id, after).await
}

/// Starts a task of a process that another owner ran before, in its current state.
async fn start_again(orchestrator: &Orchestrator, task_id: &TaskId) -> Result<(), ProjectError> {
    match orchestrator.start(task_id).await {
        Err(OrchestratorError::Ended { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// From now on a task that was created before works with the environment of this process.
async fn bind(
    environments: &ProjectEnvironments,
    orchestrator: &Orchestrator,
    lease: &ProcessLease,
    process: &TaskProcess,
    task_id: &TaskId,
) -> Result<(), ProjectError> {
    let created = orchestrator.task_alone(task_id).await?.created;
    let recorded = Route::parse(created.route.as_ref()).map_err(ProjectError::Failed)?.process;
    match recorded.and_then(|recorded| recorded.id) {
        Some(_) => {
            let root = created.root.as_ref().unwrap_or(task_id);
            environments.resume_with(root, lease, orchestrator);
            Ok(())
        }
        None if process.has_own_permissions() => Err(ProjectError::InvalidInput(
            "the task was not created with `antiphon run`: it has the permissions of its server. Omit --allow, \
             --mode and --network"
                .to_owned(),
        )),
        None => Ok(()),
    }
}

async fn started(
    orchestrator: &Orchestrator,
    task_id: TaskId,
    after: Position,
) -> Result<RunStarted, ProjectError> {
    let root = orchestrator.created(&task_id).await?.root;
    let (root, warnings) = (root.unwrap_or_else(|| task_id.clone()), Vec::new());
    Ok(RunStarted { root, task_id, after, warnings })
}
