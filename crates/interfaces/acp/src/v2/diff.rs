//! A diff as changes of files, with a patch where the old text is known. Nothing of a file is read.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use similar::TextDiff;

/// Bytes that are compared. A longer diff has no patch.
const COMPARED_BYTES_MAX: usize = 256 * 1024;

/// Time limit of the exact comparison; then a coarser one is made.
const COMPARING_MAX: Duration = Duration::from_millis(50);

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// A diff of version 1, which has a path, and the old and the new text. Without an old text the file was written whole.
pub(super) fn rewritten(diff: &Value) -> Value {
    let path = diff["path"].as_str().unwrap_or_default();
    let (old, new) = (diff["oldText"].as_str(), diff["newText"].as_str().unwrap_or_default());
    let is_new = old.is_none() && Path::new(path).symlink_metadata().is_err();
    let operation = if is_new { "add" } else { "modify" };
    let changes = json!([{ "operation": operation, "path": path, "fileType": "text" }]);
    let mut rewritten = json!({ "type": "diff", "changes": changes });
    let known = if is_new { Some("") } else { old };
    if let Some(text) = known.and_then(|old| patch(path, (old, new), is_new)) {
        rewritten["patch"] = json!({ "format": "git_patch", "text": text });
    }
    rewritten
}

/// A patch in the format of git, with the absolute path. Lines are counted from the beginning of the replaced text.
fn patch(path: &str, (old, new): (&str, &str), is_new: bool) -> Option<String> {
    // Git would quote such a path.
    let is_plain = |sign: char| !sign.is_control() && sign != '"' && sign != '\\';
    if !path.chars().all(is_plain) || old.len() + new.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let diff = TextDiff::configure().timeout(COMPARING_MAX).diff_lines(old, new);
    let mut unified = diff.unified_diff();
    let hunks = unified.context_radius(CONTEXT_LINES).to_string();
    let (mode, before) = if is_new { ("new file mode 100644\n", "/dev/null") } else { ("", path) };
    Some(format!("diff --git {path} {path}\n{mode}--- {before}\n+++ {path}\n{hunks}"))
}
