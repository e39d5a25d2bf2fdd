//! Unified diffs from the reports of `edit` and `write`. For a new file, whose report has no diff, the diff
//! is made from its content. Any other report without a diff yields an empty one.

use std::fmt::Write;

use serde_json::Value;

/// Content of a new file in its diff, in bytes, at most.
const NEW_FILE_BYTES_MAX: usize = 64 * 1024;

/// The last line of a report whose diff is cut.
const CUT: &str = "[the diff is cut here: more was changed]";

/// The last line of a diff of a new file that is cut.
const CONTENT_CUT: &str = "[the file is cut here: more was written]";

/// The diff of one change, and whether it is incomplete; `None` when nothing was changed.
pub(super) fn diff_of_report(
    path: &str,
    arguments: &Value,
    report: &str,
) -> Option<(String, bool)> {
    let name = on_one_line(path);
    if let Some(at) = hunks(report) {
        return Some((format!("--- {name}\n+++ {name}\n{}", &report[at..]), false));
    }
    if report.starts_with("Created ") {
        let content = arguments["content"].as_str().unwrap_or_default();
        return Some((created(&name, content), false));
    }
    // The file was changed, and the report does not say how.
    let changed = report.starts_with("Overwrote ") || report.starts_with("Edited ");
    changed.then(|| (String::new(), true))
}

/// Whether a diff was cut at a limit.
pub(super) fn is_cut(diff: &str) -> bool {
    diff.ends_with(&format!("{CUT}\n")) || diff.ends_with(&format!("{CONTENT_CUT}\n"))
}

/// Offset of the first hunk in a report.
fn hunks(report: &str) -> Option<usize> {
    if report.starts_with("@@ -") {
        return Some(0);
    }
    report.find("\n@@ -").map(|at| at + 1)
}

/// The content of a new file, up to [`NEW_FILE_BYTES_MAX`].
fn created(name: &str, content: &str) -> String {
    let end = content.floor_char_boundary(NEW_FILE_BYTES_MAX);
    let lines = content.lines().count();
    let mut diff = format!("--- /dev/null\n+++ {name}\n");
    if lines == 0 {
        return diff;
    }
    // Writing to a string does not fail.
    let _ = writeln!(diff, "@@ -0,0 +1{} @@", Count(lines));
    for line in content[..end].lines() {
        let _ = writeln!(diff, "+{line}");
    }
    if end < content.len() {
        let _ = writeln!(diff, "{CONTENT_CUT}");
    } else if !content.ends_with('\n') {
        let _ = writeln!(diff, "\\ No newline at end of file");
    }
    diff
}

/// Line count in the header of a hunk; one is left out.
struct Count(usize);

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 1 { Ok(()) } else { write!(f, ",{}", self.0) }
    }
}

/// A path for the header of a diff: always on one line.
fn on_one_line(path: &str) -> String {
    if path.chars().any(char::is_control) { format!("{path:?}") } else { path.to_owned() }
}
