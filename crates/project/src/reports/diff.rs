//! Changes that the file tools of a task made, read from the journal: each successful `edit` and `write`,
//! with the unified diff that the tool reported.
//!
//! Only calls that ran in the task itself count, not calls in a history that a client sent. Changes made by
//! commands (`bash`) and by programs in terminals are not included. A diff beyond the limits is marked as
//! truncated.

mod hunks;

use std::collections::HashMap;
use std::num::NonZeroUsize;

use antiphon_api::{FileChange, TaskDiff};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{
    Event, EventBody, InputBlock, Message, Position, TaskId, ToolCallBlock, ToolCallId,
};
use antiphon_runtime::{Orchestrator, OrchestratorError};
use serde_json::Value;

use self::hunks::{diff_of_report, is_cut};
use crate::reports::task_tree::{TreeScope, task_and_descendants};

/// Changes in one diff, at most.
pub const CHANGES_MAX: usize = 1000;

/// Length of all changes in one diff, in bytes, at most.
pub const DIFFS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// What no diff includes.
const NOTE: &str = "only changes by the tools edit and write; changes by commands are not included";

/// Tasks whose changes a diff includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffScope {
    /// The task alone.
    Task,
    /// The task and its descendants.
    Tree,
}

/// Changes that the file tools made; `None` when the tree of the task is too large.
pub async fn task_diff(
    orchestrator: &Orchestrator,
    task_id: &TaskId,
    scope: DiffScope,
) -> Result<Option<TaskDiff>, OrchestratorError> {
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let found = match scope {
        DiffScope::Task => Some(orchestrator.tasks(one).await?),
        DiffScope::Tree => task_and_descendants(orchestrator, task_id, TreeScope::Journal).await?,
    };
    let Some(found) = found else { return Ok(None) };
    let mut collected = Collected::default();
    for task in found {
        let mut calls = Calls::default();
        let mut events = orchestrator.follow(Some(task.task_id), Position(0));
        loop {
            let event = events.next().await?;
            if let Some(change) = calls.read(&event) {
                collected.add(change);
            }
            if event.seq >= task.seq || collected.truncated {
                break;
            }
        }
    }
    let Collected { mut changes, truncated, .. } = collected;
    changes.sort_by_key(|change| change.position);
    Ok(Some(TaskDiff { changes, truncated, note: NOTE.into() }))
}

/// Changes within the limits.
#[derive(Default)]
struct Collected {
    changes: Vec<FileChange>,
    bytes: usize,
    truncated: bool,
}

impl Collected {
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
    requested: HashMap<ToolCallId, (String, Value)>,
    /// Requested calls that have started.
    started: HashMap<ToolCallId, (String, Value)>,
}

impl Calls {
    /// The change that an event completes, if any.
    fn read(&mut self, event: &Event) -> Option<FileChange> {
        if let EventBody::ToolStarted(started) = &event.body {
            let call = self.requested.remove(&started.tool_call_id)?;
            self.started.insert(started.tool_call_id.clone(), call);
            return None;
        }
        let EventBody::MessageAppended(appended) = &event.body else { return None };
        match &*appended.message {
            Message::User(_) => None,
            Message::Assistant(answer) => {
                // Calls of earlier messages no longer start.
                self.requested = answer.tool_calls().filter_map(file_call).collect();
                None
            }
            Message::ToolResult(result) => {
                let (tool, arguments) = self.started.remove(&result.tool_call_id)?;
                if result.is_error {
                    return None;
                }
                let report: Vec<&str> = result.content.iter().filter_map(text).collect();
                let path = arguments["path"].as_str()?.to_owned();
                let (diff, incomplete) = diff_of_report(&path, &arguments, &report.concat())?;
                Some(FileChange {
                    task_id: event.task_id.clone(),
                    seq: event.seq,
                    at: event.at,
                    tool_call_id: result.tool_call_id.clone(),
                    tool,
                    cut: incomplete || is_cut(&diff),
                    path,
                    diff,
                    position: event.position,
                })
            }
        }
    }
}

fn file_call(call: &ToolCallBlock) -> Option<(ToolCallId, (String, Value))> {
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
