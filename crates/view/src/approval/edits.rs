//! The edits of a call as differences, so that a person sees what changes before it does.

use std::time::Duration;

use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::{CallLine, LineKind, readable};
use crate::text::count;

/// The argument that holds the edits of a file.
const EDITS: &str = "edits";

/// Bytes that are compared. Longer texts are shown as removed and added.
const COMPARED_BYTES_MAX: usize = 256 * 1024;

/// Time limit of the exact comparison; then a coarser one is shown.
const COMPARING_MAX: Duration = Duration::from_millis(50);

/// An edit as the tool takes it. An edit with anything else is not one.
struct Edit<'a> {
    old: &'a str,
    new: &'a str,
    all: bool,
}

/// The lines of an argument with edits. `None`: it holds something else, which is shown as it is.
pub(super) fn lines(name: &str, value: &Value) -> Option<Vec<CallLine>> {
    let edits = value.as_array().filter(|_| name == EDITS)?;
    let edits: Vec<Edit<'_>> =
        edits.iter().map(|edit| Edit::of(edit.as_object()?)).collect::<Option<_>>()?;
    let mut lines = vec![CallLine::plain(count(edits.len() as u64, "edit"))];
    for (index, edit) in edits.iter().enumerate() {
        if edit.all {
            let text = format!("edit {}: every place with this text", index + 1);
            lines.push(CallLine::plain(text));
        } else if edits.len() > 1 {
            lines.push(CallLine::plain(format!("edit {}", index + 1)));
        }
        edit.add_to(&mut lines);
    }
    Some(lines)
}

impl<'a> Edit<'a> {
    fn of(fields: &'a Map<String, Value>) -> Option<Self> {
        let mut edit = Self { old: "", new: "", all: false };
        let mut has_old = false;
        for (name, value) in fields {
            match name.as_str() {
                "old" | "old_string" | "old_text" => {
                    (edit.old, has_old) = (value.as_str()?, true);
                }
                "new" | "new_string" | "new_text" => edit.new = value.as_str()?,
                "all" | "replace_all" => edit.all = value.as_bool()?,
                _ => return None,
            }
        }
        has_old.then_some(edit)
    }

    fn add_to(&self, lines: &mut Vec<CallLine>) {
        if self.old.len() + self.new.len() > COMPARED_BYTES_MAX {
            lines.extend(self.old.lines().map(|line| call_line(ChangeTag::Delete, line)));
            lines.extend(self.new.lines().map(|line| call_line(ChangeTag::Insert, line)));
            return;
        }
        let diff = TextDiff::configure().timeout(COMPARING_MAX).diff_lines(self.old, self.new);
        lines.extend(diff.iter_all_changes().map(|change| {
            let line = change.value();
            call_line(change.tag(), line.strip_suffix('\n').unwrap_or(line))
        }));
    }
}

fn call_line(tag: ChangeTag, line: &str) -> CallLine {
    let (kind, sign) = match tag {
        ChangeTag::Equal => (LineKind::Unchanged, ' '),
        ChangeTag::Delete => (LineKind::Removed, '-'),
        ChangeTag::Insert => (LineKind::Added, '+'),
    };
    CallLine { kind, text: format!("{sign}{}", readable(line)) }
}
