//! What is run: a new task, perhaps in a conversation that it continues, or an interrupted one.

use std::io::IsTerminal;
use std::path::Path;

use antiphon_api::RunTarget;
use antiphon_core::port::TaskSelector;
use antiphon_core::{RawJson, TaskStatus, TaskSummary};
use antiphon_process::{AttachedTask, Connection};
use antiphon_project::models::Route;
use antiphon_project::run_request::{RunRequest, RunSession};
use antiphon_project::task_lookup::find_task;
use antiphon_project::task_process::TaskProcess;
use antiphon_runtime::Orchestrator;
use antiphon_view::display::escaped;
use antiphon_view::text::{cut, one_line};

use super::{Order, Run};
use crate::commands::sessions;
use crate::failure::Failure;
use crate::terminal;

impl Run {
    /// The task: a new one, or one to resume.
    pub(super) async fn target(
        &self,
        order: Option<Order>,
        process: TaskProcess,
        attachment: &AttachedTask<'_>,
    ) -> Result<RunTarget, Failure> {
        let reader = attachment.connection().reader();
        let Some(order) = order else {
            return resumed(reader, self.resume.as_deref().unwrap_or("last")).await;
        };
        let request = RunRequest {
            prompt: order.prompt,
            blocks: order.blocks,
            agent: self.agent.clone().or(order.agent),
            model: self.model.clone().or(order.model),
            system: self.system.clone(),
            session: self.session(attachment.connection()).await?,
            limits: order.limits,
            output_schema: order.output_schema,
            plan: self.plan,
            compact: false,
            source: None,
            route: Route { process: Some(process), ..order.route },
        };
        let request = RawJson::of(&request);
        Ok(RunTarget::New(request.map_err(|error| Failure::failed(error.to_string()))?))
    }

    /// The conversation that the task continues.
    async fn session(&self, connection: &Connection) -> Result<Option<RunSession>, Failure> {
        let Some(name) = self.session.as_deref() else { return Ok(None) };
        if sessions::is_file(name) {
            // Checked here, and read where the task is built.
            sessions::from_file(Path::new(name))?;
            let path = std::path::absolute(name);
            let path = path.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
            return Ok(Some(RunSession::File(path)));
        }
        let session = connection.find_session(name).await?;
        if !session.status.is_terminal() {
            return Err(Failure::usage(format!(
                "its last task has not ended: resume it with `antiphon run --resume {}`",
                session.last_task
            )));
        }
        let (session_id, last_task) = (session.session_id, session.last_task);
        Ok(Some(RunSession::Stored { session_id, last_task }))
    }
}

/// An interrupted task to resume. What was printed before is not printed again. A task that has failed or was
/// canceled cannot be resumed: the error says how to go on with it.
async fn resumed(orchestrator: &Orchestrator, name: &str) -> Result<RunTarget, Failure> {
    let unfinished = find_task(orchestrator, name, TaskSelector::Unfinished).await;
    let newest = find_task(orchestrator, name, TaskSelector::All).await?;
    let other = unfinished.as_ref().ok().filter(|task| !task.status.is_terminal());
    let is_newer = other.is_none_or(|other| newest.created_at > other.created_at);
    if is_newer && matches!(newest.status, TaskStatus::Failed | TaskStatus::Canceled) {
        return Err(ended(orchestrator, &newest, other).await?);
    }
    let task = unfinished?;
    if name == "last" && std::io::stderr().is_terminal() {
        let prompt = escaped(&one_line(&task.title)).into_owned();
        terminal::note(&format!("resumes task {}: {}\n", task.task_id.short(), cut(&prompt)));
    }
    Ok(RunTarget::Resume(task.task_id))
}

/// How to go on with a task that has ended without a result.
async fn ended(
    orchestrator: &Orchestrator,
    task: &TaskSummary,
    unfinished: Option<&TaskSummary>,
) -> Result<Failure, Failure> {
    let (id, session) = (&task.task_id, &task.session_id);
    let detail = orchestrator.last_status(id).await?.and_then(|last| last.detail);
    let error = detail.as_ref().and_then(|detail| detail["error"].as_str());
    let how = match error.filter(|_| task.status == TaskStatus::Failed) {
        Some(error) => format!("has failed ({})", escaped(&one_line(error))),
        None => format!("was {}", task.status.as_str()),
    };
    let other = unfinished.map_or(String::new(), |other| {
        format!("; the last unfinished task is older: `antiphon run --resume {}`", other.task_id)
    });
    Ok(Failure::usage(format!(
        "task {id} {how} and cannot be resumed: go on with its conversation with `antiphon run --session \
         {session} \"…\"`{other}"
    )))
}
