//! `edit`: changes parts of a file.
//!
//! Every edit is matched against the original file, not against the result of another edit. If an
//! edit does not match or two edits overlap, nothing changes. Bytes that no edit touches stay
//! identical: byte order mark, line endings, a missing final line break, bytes that are not text.
//!
//! | `old` is found                              | what happens                                   |
//! |---------------------------------------------|------------------------------------------------|
//! | once, exactly                               | replaced                                       |
//! | several times, exactly                      | all are with `all`, otherwise an error         |
//! | once, but for white space, quotes or dashes | replaced; lines that `new` repeats stay        |
//! | nowhere, or several times like that         | an error with the place that is most similar   |
//!
//! Line breaks of the model (`\n`) stand for those of the file: `\r\n` is matched and inserted
//! where the file has it.

mod changed_text;
mod diff;
mod document;
mod file_edit;
mod indent;
mod matching;
mod nearest;
mod tolerant;

use std::sync::Arc;

use antiphon_core::port::{Cancel, CutOffCall, CutOffOutcome, ToolContext};
use antiphon_core::{Effect, RawJson, TaskId, Tool, ToolError, ToolResult};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::change_note::{self, ChangeNote};
use crate::read_tracker::ReadTracker;
use crate::workspace::Workspace;
use antiphon_toolbox::{ToolHandler, blocking};
use antiphon_toolbox::{arguments, definition};
pub(crate) use diff::Diff;
use file_edit::FileEdit;
pub use matching::EDIT_MATCHES_MAX;

/// Most edits of one call.
pub const EDITS_MAX: usize = 1_000;

const NAME: &str = "edit";

const DESCRIPTION: &str = "\
Replaces text in a file, for each of `edits`. `old` must occur in the file exactly once: copy \
enough lines around the change to make it unique, without line numbers, or set `all`. All edits \
refer to the file as it is now, must not overlap, and are done together or not at all. Example: \
{\"path\": \"src/main.rs\", \"edits\": [{\"old\": \"let n = 1;\", \"new\": \"let n = 2;\"}]}";

/// Changes parts of a file.
#[derive(Debug)]
pub struct EditTool {
    workspace: Arc<Workspace>,
    reads: Arc<ReadTracker>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Relative or absolute.
    path: String,
    #[serde(deserialize_with = "edits")]
    #[schemars(with = "Vec<Edit>", length(min = 1, max = 1_000))]
    edits: Vec<Edit>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    #[serde(alias = "old_string", alias = "old_text")]
    old: String,
    #[serde(alias = "new_string", alias = "new_text")]
    new: String,
    /// Replace every occurrence.
    #[serde(default, alias = "replace_all")]
    all: bool,
}

impl EditTool {
    /// Edits files in `workspace`, and records the new version of a file in `reads`.
    pub fn new(workspace: Arc<Workspace>, reads: Arc<ReadTracker>) -> Self {
        Self { workspace, reads }
    }

    fn file_edit(&self, task_id: TaskId) -> FileEdit {
        let (workspace, reads) = (Arc::clone(&self.workspace), Arc::clone(&self.reads));
        FileEdit { workspace, reads, task_id }
    }
}

#[async_trait]
impl ToolHandler for EditTool {
    fn definition(&self) -> Tool {
        definition::<Arguments>(NAME, DESCRIPTION)
    }

    /// Not idempotent: an edit that adds text adds it twice when repeated.
    fn effect(&self) -> Effect {
        Effect::SideEffect
    }

    async fn call(&self, json: &RawJson, context: ToolContext) -> Result<ToolResult, ToolError> {
        let arguments: Arguments = arguments(NAME, json)?;
        check(&arguments.edits)
            .map_err(|reason| ToolError::InvalidArguments { tool: NAME.to_owned(), reason })?;
        let note = ChangeNote::read(context.note.as_ref());
        let editing = self.file_edit(context.task_id);
        blocking(NAME, context.cancel, move |stop| {
            editing.edit(&arguments.path, &arguments.edits, note.as_ref(), stop)
        })
        .await
    }

    async fn start_note(&self, json: &RawJson, task_id: &TaskId) -> Option<Value> {
        let arguments: Arguments = arguments(NAME, json).ok()?;
        check(&arguments.edits).ok()?;
        let editing = self.file_edit(task_id.clone());
        let note = blocking(NAME, Cancel::never(), move |stop| {
            editing.change_note(&arguments.path, &arguments.edits, stop)
        });
        note.await.ok()??.to_value()
    }

    async fn inspect_cut_off(&self, json: &RawJson, call: &CutOffCall) -> CutOffOutcome {
        let parsed = arguments::<Arguments>(NAME, json);
        let (Ok(arguments), Some(note)) = (parsed, ChangeNote::read(call.note.as_ref())) else {
            return CutOffOutcome::Unknown { known: String::new() };
        };
        let editing = self.file_edit(call.task_id.clone());
        let looked = blocking(NAME, Cancel::never(), move |_| {
            Ok(editing.inspect_cut_off(&arguments.path, &note))
        });
        looked.await.unwrap_or_else(|error| change_note::unreadable(&error.to_string()))
    }

    async fn release(&self, task_id: &TaskId) {
        self.reads.release(task_id);
    }
}

fn check(edits: &[Edit]) -> Result<(), String> {
    if edits.is_empty() || edits.len() > EDITS_MAX {
        return Err(format!("`edits`: expected 1 to {EDITS_MAX} edits, not {}", edits.len()));
    }
    for (i, edit) in edits.iter().enumerate() {
        if edit.old.is_empty() {
            return Err(format!(
                "`edits[{i}].old`: expected the text to replace, not an empty one; to make a new \
                 file use write"
            ));
        }
        if edit.old == edit.new {
            return Err(format!(
                "`edits[{i}]`: `old` and `new` are the same, nothing would change"
            ));
        }
    }
    Ok(())
}

/// Parses a list of edits. Also accepts a single edit, or the JSON as a string.
fn edits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Edit>, D::Error> {
    let mut value = Value::deserialize(deserializer)?;
    if let Value::String(text) = &value {
        value = serde_json::from_str(text)
            .map_err(|_| de::Error::custom("expected a list of {old, new, all?}, not a text"))?;
    }
    if value.is_object() {
        value = Value::Array(vec![value]);
    }
    let Value::Array(values) = value else {
        return Err(de::Error::custom("expected a list of {old, new, all?}"));
    };
    let edit = |(i, value)| {
        serde_json::from_value(value).map_err(|error| de::Error::custom(format!("[{i}]: {error}")))
    };
    values.into_iter().enumerate().map(edit).collect()
}
