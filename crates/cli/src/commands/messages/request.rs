//! `antiphon request`: drops a control request and waits for its response, which is the same from a server
//! and from this process. A request without a response in time stays in its folder.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use antiphon_core::{OrderResult, OrderStatus};
use antiphon_process::ControlRequest;
use antiphon_project::environment::Environment;
use antiphon_view::display::escaped;
use clap::Args;
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::request_drop::REQUEST_BYTES_MAX;
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
        let request = ControlRequest {
            requester: REQUESTER.to_owned(),
            json: self.read()?,
            timeout: self.timeout.into(),
        };
        let response = request.submit(environment).await?;
        if self.json {
            terminal::print(&terminal::json(&response.json)?);
        }
        let done = response.outcome?;
        if !self.json {
            terminal::print(&described(&done));
        }
        exit(&done)
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

/// `started: reviewer, task 0199…`.
pub(super) fn described(done: &OrderResult) -> String {
    let mut about: Vec<String> =
        done.agent.iter().map(|agent| escaped(agent).into_owned()).collect();
    about.extend(done.task_id.iter().map(|task_id| format!("task {task_id}")));
    about.extend(done.interaction_id.iter().map(|id| format!("interaction {id}")));
    let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(", ")) };
    let result = match &done.result {
        None => String::new(),
        Some(Value::String(text)) => format!("{text}\n"),
        Some(other) => format!("{other}\n"),
    };
    format!("{}{about}\n{result}", word(done.status))
}

fn word(status: OrderStatus) -> String {
    let word = serde_json::to_value(status).unwrap_or_default();
    word.as_str().unwrap_or_default().replace('_', " ")
}

/// The exit code of a request that was executed: that of the task, if it waited for one.
pub(super) fn exit(done: &OrderResult) -> Result<(), Failure> {
    match done.status {
        OrderStatus::Failed => Err(Failure::failed("the task has failed")),
        OrderStatus::Canceled if done.result.is_some() => Err(Failure::canceled()),
        OrderStatus::Started
        | OrderStatus::AlreadyRunning
        | OrderStatus::Stopped
        | OrderStatus::NotRunning
        | OrderStatus::Updated
        | OrderStatus::Accepted
        | OrderStatus::Answered
        | OrderStatus::Deduplicated
        | OrderStatus::Completed
        | OrderStatus::Canceled
        | OrderStatus::AlreadyEnded => Ok(()),
    }
}
