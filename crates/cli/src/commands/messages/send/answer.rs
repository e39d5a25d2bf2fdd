//! The answer that `antiphon send --wait` waits for.

use std::convert::Infallible;
use std::time::Duration;

use antiphon_api::RequestState;
use antiphon_core::TaskId;
use antiphon_process::{AcceptedInteraction, InboxTarget, ProjectServer, RequestAnswer};
use antiphon_view::outage_wait_text;
use serde_json::{Value, json};
use tokio::signal::unix::Signal;

use super::Send;
use crate::failure::{Exit, Failure};
use crate::terminal;

/// How often `--wait` looks whether the agent waits.
const WAITS_LOOK: Duration = Duration::from_secs(1);

impl Send {
    /// Waits for the answer to a request that was accepted, and shows it.
    pub(super) async fn wait(
        &self,
        target: InboxTarget<'_>,
        accepted: &AcceptedInteraction,
        timeout_s: Option<u32>,
        mut interrupts: Signal,
    ) -> Result<(), Failure> {
        let InboxTarget::Server(server) = target else {
            return self.print(target, accepted);
        };
        let see = format!("see `antiphon inbox show {}`", accepted.id);
        let answer = tokio::select! {
            answer = server.request_answer(accepted.id, timeout_s) => answer,
            never = note_waits(server, &accepted.task_id), if !self.json => match never {},
            _ = interrupts.recv() => {
                let message = format!("stopped waiting; request {} continues: {see}", accepted.id);
                return Err(Failure { exit: Exit::Interrupted, message });
            }
        };
        let answer = answer.map_err(Failure::from).map_err(|failure| {
            let message = format!("{failure}; the request is in the journal: {see}");
            Failure { message, ..failure }
        })?;
        let Some(RequestAnswer { state, result }) = answer else {
            return Err(Failure::failed(format!("`{}` did not answer in time: {see}", self.agent)));
        };
        if self.json {
            let output = json!({
                "id": accepted.id,
                "task_id": accepted.task_id,
                "status": state.as_str(),
                "result": result,
            });
            terminal::print(&terminal::json(&output)?);
        } else if state == RequestState::Completed {
            terminal::print(&shown(&result)?);
        }
        if state == RequestState::Completed {
            Ok(())
        } else {
            Err(Failure::failed(reason(&result)))
        }
    }
}

/// Says why the agent does not answer now, whenever that changes. Does not return.
async fn note_waits(server: &ProjectServer, task_id: &TaskId) -> Infallible {
    let mut ticks = tokio::time::interval(WAITS_LOOK);
    let mut noted = None;
    loop {
        ticks.tick().await;
        // The request itself finds out that the server is gone.
        let Ok(task) = server.client.task(task_id).await else { continue };
        let wait = task.summary.wait;
        if let Some(wait) = wait.as_ref().filter(|wait| Some(*wait) != noted.as_ref()) {
            terminal::note(&format!("the agent {}\n", outage_wait_text(wait)));
        }
        noted = wait;
    }
}

/// A result for people: a text as it is, anything else as JSON.
fn shown(result: &Value) -> Result<String, Failure> {
    match result.as_str() {
        Some(text) => Ok(format!("{text}\n")),
        None => terminal::json(result),
    }
}

/// Why a request has failed.
fn reason(result: &Value) -> String {
    let message = result["error"].as_str().or(result.as_str());
    message.map_or_else(|| result.to_string(), str::to_owned)
}
