//! What the file tools of a task changed, read from the journal: each `edit` and `write` that succeeded,
//! with the unified diff that the tool reported.
//!
//! Only calls that ran in the task itself count: what a client brought along as history did not happen
//! here. What commands (`bash`) and programs in terminals changed is not seen. More than is shown is
//! left out, and said.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_api::DiffQuery;
pub use antiphon_api::{FileChange, TaskDiff};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{
    Event, EventBody, InputBlock, Message, Position, TaskId, ToolCallBlock, ToolCallId,
};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::hunks::{cut, of_report};
use crate::named::{Asked, Named};
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::tasks;

/// Changes that are shown, at most.
pub const CHANGES_MAX: usize = 1000;

/// Length of all diffs that are shown, in bytes, at most.
pub const DIFFS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What is not in any of it.
const UNSEEN: &str = "what commands changed is not seen: only what the tools edit and write did";

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let diff = get_with(diff, |route| {
        let summary = "What the file tools of a task changed.";
        let route = route.told("show_diff", Tag::Tasks, summary).fails(&[400]);
        let route = route.response_with::<200, axum::Json<TaskDiff>, _>(|told| {
            told.description(
                "Its changes; with `Accept: text/x-diff` or `text/plain`, as one text.",
            )
        });
        route.also(200, "text/x-diff").also(200, "text/plain")
    });
    ApiRouter::new().api_route("/v1/tasks/{id}/diff", diff)
}

/// Whose changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The task's own.
    Own,
    /// Also those of everything below it.
    Below,
}

/// What the file tools changed; `None` when its tree is too large.
pub async fn task_diff(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    whose: Whose,
) -> Result<Option<TaskDiff>, OrchestratorError> {
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let found = match whose {
        Whose::Own => Some(orchestrator.tasks(one).await?),
        Whose::Below => tasks::below(orchestrator, task_id).await?,
    };
    let Some(found) = found else { return Ok(None) };
    let mut gathering = Gathering::default();
    for task in found {
        let mut calls = Calls::default();
        let mut events = orchestrator.follow(Some(task.task_id), Position(0));
        loop {
            let event = events.next().await?;
            if let Some(change) = calls.read(&event) {
                gathering.add(change);
            }
            if event.seq >= task.seq || gathering.truncated {
                break;
            }
        }
    }
    let Gathering { mut changes, truncated, .. } = gathering;
    changes.sort_by_key(|change| change.position);
    Ok(Some(TaskDiff { changes, truncated, note: UNSEEN.into() }))
}

/// What was gathered, as far as there is room.
#[derive(Default)]
struct Gathering {
    changes: Vec<FileChange>,
    bytes: usize,
    truncated: bool,
}

impl Gathering {
    fn add(&mut self, change: FileChange) {
        self.bytes += change.diff.len();
        if self.changes.len() == CHANGES_MAX || self.bytes > DIFFS_BYTES_MAX {
            self.truncated = true;
            return;
        }
        self.changes.push(change);
    }
}

/// The calls of one task that may change a file.
#[derive(Default)]
struct Calls {
    asked: HashMap<ToolCallId, (String, Value)>,
    /// Those that ran.
    started: HashMap<ToolCallId, (String, Value)>,
}

impl Calls {
    /// The change that an event tells of.
    fn read(&mut self, event: &Event) -> Option<FileChange> {
        if let EventBody::ToolStarted(started) = &event.body {
            let call = self.asked.remove(&started.tool_call_id)?;
            self.started.insert(started.tool_call_id.clone(), call);
            return None;
        }
        let EventBody::MessageAppended(appended) = &event.body else { return None };
        match &*appended.message {
            Message::User(_) => None,
            Message::Assistant(answer) => {
                // Calls of an answer before this one run no more.
                self.asked = answer.tool_calls().filter_map(asked).collect();
                None
            }
            Message::ToolResult(result) => {
                let (tool, arguments) = self.started.remove(&result.tool_call_id)?;
                if result.is_error {
                    return None;
                }
                let report: Vec<&str> = result.content.iter().filter_map(text).collect();
                let path = arguments["path"].as_str()?.to_owned();
                let (diff, is_cut) = of_report(&path, &arguments, &report.concat())?;
                Some(FileChange {
                    task_id: event.task_id.clone(),
                    seq: event.seq,
                    at: event.at,
                    tool_call_id: result.tool_call_id.clone(),
                    tool,
                    cut: is_cut || cut(&diff),
                    path,
                    diff,
                    position: event.position,
                })
            }
        }
    }
}

fn asked(call: &ToolCallBlock) -> Option<(ToolCallId, (String, Value))> {
    if !["edit", "write"].contains(&call.name.as_str()) {
        return None;
    }
    let arguments = serde_json::from_str(call.arguments.object()?.as_str()).ok()?;
    Some((call.id.clone(), (call.name.clone(), arguments)))
}

fn text(block: &InputBlock) -> Option<&str> {
    match block {
        InputBlock::Text(text) => Some(&text.text),
        InputBlock::Image(_) => None,
    }
}

async fn diff(
    State(room): State<Arc<AppState>>,
    Named(task_id): Named<TaskId>,
    Asked(query): Asked<DiffQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    room.summary(&task_id).await?;
    let whose = if query.below { Whose::Below } else { Whose::Own };
    let found = task_diff(&room.doors.orchestrator, &task_id, whose).await?;
    let found = found.ok_or_else(tasks::too_many_tasks)?;
    Ok(match wanted(&headers) {
        Some(kind) => ([(CONTENT_TYPE, kind)], found.text()).into_response(),
        None => axum::Json(found).into_response(),
    })
}

/// The kind of text that is wanted, if one is.
fn wanted(headers: &HeaderMap) -> Option<&'static str> {
    let accepted = headers.get(ACCEPT).and_then(|accepted| accepted.to_str().ok())?;
    let mut kinds = accepted.split([',', ';']).map(str::trim);
    kinds.find_map(|kind| match kind.to_ascii_lowercase().as_str() {
        "text/x-diff" => Some("text/x-diff; charset=utf-8"),
        "text/plain" => Some("text/plain; charset=utf-8"),
        _ => None,
    })
}
