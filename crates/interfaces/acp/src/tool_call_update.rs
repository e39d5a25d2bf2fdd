//! Tool calls of agents as the editor shows them: what kind they are, which files they concern, and what they
//! change.

use std::path::Path;

use antiphon_core::{InputBlock, ToolCallBlock, ToolCallId, ToolResultMessage};
use antiphon_view::tool_call_title;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::schema::{
    Content, ContentBlock, Diff, ImageContent, TextContent, ToolCall, ToolCallContent,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};

/// Names under which a tool takes the text that an edit replaces, and the new one.
const OLD_TEXT: [&str; 3] = ["old", "old_string", "old_text"];
const NEW_TEXT: [&str; 3] = ["new", "new_string", "new_text"];

/// The tool that delivers a result. Its result is shown as the agent's answer.
pub(crate) const FINAL: &str = "final";

/// A call that was requested.
pub(crate) fn requested(call: &ToolCallBlock, root: &Path) -> ToolCall {
    let arguments = arguments(call);
    let shown = ToolCall::new(id(&call.id), tool_call_title(call)).kind(kind(&call.name));
    let shown = shown.name(call.name.clone()).status(ToolCallStatus::Pending);
    let shown = shown.locations(locations(&call.name, &arguments, root));
    shown.content(changes(&call.name, &arguments, root)).raw_input(Value::Object(arguments))
}

/// A call whose arguments were not seen: of a descendant.
pub(crate) fn id(id: &ToolCallId) -> String {
    id.as_str().to_owned()
}

/// A call that begins to run.
pub(crate) fn status(call_id: &ToolCallId, status: ToolCallStatus) -> ToolCallUpdate {
    ToolCallUpdate::new(id(call_id), ToolCallUpdateFields::new().status(status))
}

/// Output of a call that runs.
pub(crate) fn output(call_id: &ToolCallId, text: &str) -> ToolCallUpdate {
    let content = vec![text_content(text)];
    ToolCallUpdate::new(id(call_id), ToolCallUpdateFields::new().content(content))
}

/// A call that has ended. The change of a file stays in sight.
pub(crate) fn ended(result: &ToolResultMessage, shown: Option<&ToolCall>) -> ToolCallUpdate {
    let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let mut content: Vec<ToolCallContent> = Vec::new();
    if let (Some(shown), false) = (shown, result.is_error) {
        content.extend(shown.content.iter().cloned());
    }
    content.extend(result.content.iter().map(block));
    let fields = ToolCallUpdateFields::new().status(status).content(content);
    ToolCallUpdate::new(id(&result.tool_call_id), fields)
}

pub(crate) fn text_content(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::Text(TextContent::new(text))))
}

fn block(block: &InputBlock) -> ToolCallContent {
    match block {
        InputBlock::Text(text) => text_content(&text.text),
        InputBlock::Image(image) => {
            let data = STANDARD.encode(image.data());
            let image = ImageContent::new(data, image.mime_type());
            ToolCallContent::Content(Content::new(ContentBlock::Image(image)))
        }
    }
}

fn arguments(call: &ToolCallBlock) -> Map<String, Value> {
    let arguments = call.arguments.object();
    arguments.and_then(|arguments| arguments.to().ok()).unwrap_or_default()
}

fn kind(tool: &str) -> ToolKind {
    match tool {
        "read" => ToolKind::Read,
        "write" | "edit" => ToolKind::Edit,
        "grep" | "glob" => ToolKind::Search,
        "bash" => ToolKind::Execute,
        _ => ToolKind::Other,
    }
}

fn locations(tool: &str, arguments: &Map<String, Value>, root: &Path) -> Vec<ToolCallLocation> {
    if !["read", "write", "edit", "grep", "glob"].contains(&tool) {
        return Vec::new();
    }
    let Some(path) = arguments.get("path").and_then(Value::as_str) else { return Vec::new() };
    let line = arguments.get("offset").and_then(Value::as_u64);
    let line = line.and_then(|line| u32::try_from(line).ok());
    vec![ToolCallLocation::new(root.join(path)).line(line)]
}

/// The changes that a call of a file tool makes.
fn changes(tool: &str, arguments: &Map<String, Value>, root: &Path) -> Vec<ToolCallContent> {
    let Some(path) = arguments.get("path").and_then(Value::as_str) else { return Vec::new() };
    let path = root.join(path);
    let diff = |old: Option<String>, new: String| {
        ToolCallContent::Diff(Diff::new(path.clone(), new).old_text(old))
    };
    match tool {
        "write" => {
            let content = arguments.get("content").and_then(Value::as_str);
            content.map(|content| diff(None, content.to_owned())).into_iter().collect()
        }
        "edit" => {
            let edits = arguments.get("edits").and_then(Value::as_array);
            let edit =
                |edit: &Value| Some(diff(Some(text(edit, &OLD_TEXT)?), text(edit, &NEW_TEXT)?));
            edits.into_iter().flatten().filter_map(edit).collect()
        }
        _ => Vec::new(),
    }
}

fn text(edit: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| edit.get(*name)?.as_str().map(str::to_owned))
}
