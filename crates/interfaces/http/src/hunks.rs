//! From what `edit` and `write` report to a unified diff. A report without one, of a file that is new,
//! becomes one of its content; of any other, there is none to be had.

use std::fmt::Write;

use serde_json::Value;

/// Content of a new file that is shown, in bytes, at most.
const NEW_FILE_BYTES_MAX: usize = 64 * 1024;

/// What a report says where its diff does not show all.
const CUT: &str = "[the diff is cut here: more was changed]";

/// Ours for the same.
const CONTENT_CUT: &str = "[the file is cut here: more was written]";

/// The diff of one change, and whether it leaves something out; `None` when nothing was changed.
pub(crate) fn of_report(path: &str, arguments: &Value, report: &str) -> Option<(String, bool)> {
    let name = shown(path);
    if let Some(at) = hunks(report) {
        return Some((format!("--- {name}\n+++ {name}\n{}", &report[at..]), false));
    }
    if report.starts_with("Created ") {
        let content = arguments["content"].as_str().unwrap_or_default();
        return Some((created(&name, content), false));
    }
    // It was changed, and nobody can say how.
    let changed = report.starts_with("Overwrote ") || report.starts_with("Edited ");
    changed.then(|| (String::new(), true))
}

/// Whether a diff leaves something out.
pub(crate) fn cut(diff: &str) -> bool {
    diff.ends_with(&format!("{CUT}\n")) || diff.ends_with(&format!("{CONTENT_CUT}\n"))
}

/// Where the first hunk of a report begins.
fn hunks(report: &str) -> Option<usize> {
    if report.starts_with("@@ -") {
        return Some(0);
    }
    report.find("\n@@ -").map(|at| at + 1)
}

/// Everything in a new file, as far as there is room.
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

/// How many lines a hunk has; nothing for one.
struct Count(usize);

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 1 { Ok(()) } else { write!(f, ",{}", self.0) }
    }
}

/// A name as it may stand in a diff: on one line, whatever is in it.
fn shown(path: &str) -> String {
    if path.chars().any(char::is_control) { format!("{path:?}") } else { path.to_owned() }
}
