//! `antiphon request`: drops a control request and waits for its response, which is the same from a server
//! and from this process. A request without a response in time stays in its folder.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::OrderStatus;
use antiphon_file_drop::{DropError, REQUEST_BYTES_MAX, Response, ResponseError, drop_and_wait};
use antiphon_process::Ownership;
use antiphon_project::agent_files::AgentFiles;
use antiphon_project::control_orders::{Execution, ProjectOrders};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::project_agents::ProjectAgents;
use antiphon_project::project_task_factory::ProjectTaskFactory;
use antiphon_project::toolset::{PermissionOverrides, Toolset};
use antiphon_sqlite::SqliteJournal;
use antiphon_view::display::escaped;
use clap::Args;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::failure::{Exit, Failure};
use crate::terminal;

/// Requester of this command: the name of the request's folder.
const REQUESTER: &str = "cli";

/// Drop a control request, and wait for its response (see docs/file-drop.md).
#[derive(Debug, Args)]
#[command(after_help = "\
A request is a JSON object with an `action`: spawn_agent, stop_agent, update_agent_context, send, invoke,
respond or cancel. It goes into .antiphon/requests/cli, where `antiphon serve` carries it out; without a server
this command records it, and the next server runs its task.

Exit code 0 when it was carried out, 1 when an awaited task has failed, 2 when the request is invalid,
3 when it is not allowed, 4 when there was no response in time.

Examples:
  antiphon request spawn.json
  echo '{\"action\":\"spawn_agent\",\"name\":\"scribe\",\"profile\":\"native\"}' | antiphon request -
  echo '{\"action\":\"invoke\",\"prompt\":\"Hello\",\"wait\":true}' | antiphon request - --timeout 5m --json")]
pub(crate) struct Request {
    /// The file with the request, or `-` for standard input.
    file: PathBuf,

    /// How long to wait for the response: `30s`, `10m`.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: humantime::Duration,

    /// Print the response as JSON.
    #[arg(long)]
    json: bool,
}

impl Request {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let request = self.read()?;
        let submission =
            Submission { requester: REQUESTER.to_owned(), timeout: self.timeout.into() };
        let response = submission.submit(environment, request).await?;
        if self.json {
            terminal::print(&terminal::json(&response)?);
        } else if response.ok {
            terminal::print(&described(&response));
        }
        outcome(&response)
    }

    /// Reads the request, which must be a JSON object.
    fn read(&self) -> Result<Vec<u8>, Failure> {
        let shown = self.file.display();
        let refuse = |reason: String| Failure::usage(format!("{shown}: {reason}"));
        let mut bytes = Vec::new();
        let limit = REQUEST_BYTES_MAX as u64 + 1;
        let read = if self.file.as_os_str() == "-" {
            terminal::check_readable("the request")?;
            std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
        } else {
            File::open(&self.file).and_then(|file| file.take(limit).read_to_end(&mut bytes))
        };
        read.map_err(|error| refuse(error.to_string()))?;
        if bytes.len() > REQUEST_BYTES_MAX {
            return Err(refuse(format!("a request may have {REQUEST_BYTES_MAX} bytes")));
        }
        serde_json::from_slice::<Map<String, Value>>(&bytes)
            .map_err(|error| refuse(format!("not a JSON object: {error}")))?;
        Ok(bytes)
    }
}

/// How a request is submitted.
pub(super) struct Submission {
    /// Name of the folder it is dropped into.
    pub(super) requester: String,
    /// How long to wait for the response.
    pub(super) timeout: Duration,
}

impl Submission {
    /// Has the owner of the journal execute a request, or this process when there is none.
    pub(super) async fn submit(
        &self,
        environment: &Environment,
        request: Vec<u8>,
    ) -> Result<Response, Failure> {
        let project = Project::find(environment)?;
        match Ownership::find(&project).await? {
            Ownership::Client(owner) => {
                // Before the file drop creates it: it is trusted at once.
                project.trusted_requests()?;
                owner.answer(owner.client.watch_requests().await)?;
                self.drop_in(&project, request).await
            }
            Ownership::Owner(journal) => {
                self.execute(environment, &project, journal, request).await
            }
        }
    }

    async fn drop_in(&self, project: &Project, request: Vec<u8>) -> Result<Response, Failure> {
        let folder = project.trusted_requests()?;
        drop_and_wait(folder, &self.requester, request, self.timeout).await.map_err(|error| {
            match error {
                DropError::Requester { .. } | DropError::Folder { .. } => {
                    Failure::usage(error.to_string())
                }
                DropError::Timeout { .. } => Failure::unavailable(error.to_string()),
            }
        })
    }

    /// Carries the request out in this process, because no server runs.
    async fn execute(
        &self,
        environment: &Environment,
        project: &Project,
        journal: SqliteJournal,
        request: Vec<u8>,
    ) -> Result<Response, Failure> {
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
        let file_drop =
            project.request_drop().get().serve(root, trust, Arc::new(orders), stop.clone());
        let answered = async {
            let response = self.drop_in(project, request).await;
            stop.cancel();
            response
        };
        let (file_drop, response) = tokio::join!(file_drop, answered);
        project_agents.shutdown().await;
        file_drop.map_err(Failure::failed)?;
        response
    }
}

/// `started: reviewer, task 0199…`.
pub(super) fn described(response: &Response) -> String {
    let status = response.status.map_or("done".to_owned(), word);
    let mut about: Vec<String> =
        response.agent.iter().map(|agent| escaped(agent).into_owned()).collect();
    about.extend(response.task_id.iter().map(|task_id| format!("task {task_id}")));
    about.extend(response.interaction_id.iter().map(|id| format!("interaction {id}")));
    let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(", ")) };
    let result = match &response.result {
        None => String::new(),
        Some(Value::String(text)) => format!("{text}\n"),
        Some(other) => format!("{other}\n"),
    };
    format!("{status}{about}\n{result}")
}

fn word(status: OrderStatus) -> String {
    let word = serde_json::to_value(status).unwrap_or_default();
    word.as_str().unwrap_or_default().replace('_', " ")
}

/// The exit code of a response.
pub(super) fn outcome(response: &Response) -> Result<(), Failure> {
    if let Some(ResponseError { code, message }) = &response.error {
        let exit = match code.as_str() {
            "FORBIDDEN" | "UNAUTHORIZED" => Exit::Refused,
            "SERVICE_UNAVAILABLE" | "RATE_LIMIT_EXCEEDED" => Exit::Unavailable,
            "INTERNAL_ERROR" => Exit::Failed,
            _ => Exit::Usage,
        };
        let known = if message.starts_with("unknown orchestrator action: ") {
            "; the actions are in docs/file-drop.md"
        } else {
            ""
        };
        return Err(Failure { exit, message: format!("{message}{known}") });
    }
    match response.status {
        Some(OrderStatus::Failed) => Err(Failure::failed("the task has failed")),
        Some(OrderStatus::Canceled) if response.result.is_some() => Err(Failure::canceled()),
        Some(_) | None => Ok(()),
    }
}
