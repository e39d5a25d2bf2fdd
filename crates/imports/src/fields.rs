//! Fields of front matter, taken one by one. What is left at the end was not used.

use antiphon_core::{DESCRIPTION_BYTES_MAX, visible};
use serde_json::Value;

/// Most characters of a value that are quoted in a report.
const QUOTED_CHARS_MAX: usize = 60;

/// Fields of a file, and what was dropped of them.
pub(crate) struct Fields {
    left: Vec<(String, Value)>,
    pub(crate) dropped: Vec<String>,
}

impl Fields {
    pub(crate) fn new(fields: Vec<(String, Value)>) -> Self {
        Self { left: fields, dropped: Vec::new() }
    }

    /// Takes a field; one without a value is as if it were absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.left.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.left.remove(at);
        (!value.is_null()).then_some(value)
    }

    /// Takes a field that holds a text; any other value is dropped.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(visible(text.trim())).filter(|text| !text.is_empty()),
            Value::Number(number) => Some(number.to_string()),
            other @ (Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                self.drop_field(name, &format!("{} is no text", quoted(&other.to_string())));
                None
            }
        }
    }

    /// Takes a field that holds words: a list, or a text with commas. Commas in parentheses belong to a word.
    pub(crate) fn words(&mut self, name: &str) -> Option<Vec<String>> {
        match self.take(name)? {
            Value::String(text) => Some(words(&text)),
            Value::Array(items) => {
                let mut found = Vec::new();
                for item in items {
                    match item {
                        Value::String(text) => found.extend(words(&text)),
                        other @ (Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::Array(_)
                        | Value::Object(_)) => {
                            let reason = format!("{} is no name", quoted(&other.to_string()));
                            self.drop_field(name, &reason);
                        }
                    }
                }
                Some(found)
            }
            // A restriction that cannot be read must not become none.
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                self.drop_field(name, &format!("{} is no list", quoted(&other.to_string())));
                Some(Vec::new())
            }
        }
    }

    /// Records that a field, or a part of it, is not used.
    pub(crate) fn drop_field(&mut self, name: &str, reason: &str) {
        self.dropped.push(format!("`{}`: {reason}", quoted(name)));
    }

    /// What was dropped, with the fields that nothing took. `known` says why some have no effect here.
    pub(crate) fn finish(mut self, known: &[(&str, &str)]) -> Vec<String> {
        for (name, _) in std::mem::take(&mut self.left) {
            let reason = known.iter().find(|(field, _)| *field == name);
            self.drop_field(&name, reason.map_or("has no effect here", |(_, reason)| reason));
        }
        self.dropped
    }
}

/// Words between commas or blanks; what is in parentheses stays together.
fn words(text: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            found.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    found.push(word);
    let found = found.iter().map(|word| visible(word.trim().trim_matches(['[', ']', '"', '\''])));
    found.filter(|word| !word.is_empty()).collect()
}

/// A description on one line or more, cut to what an agent here may have.
pub(crate) fn description(fields: &mut Fields, body: &str) -> Option<String> {
    let given = fields.text("description").map(|text| text.replace("\\n", "\n"));
    let first_line = || {
        let mut lines = body.lines().map(|line| line.trim().trim_start_matches('#').trim());
        lines.find(|line| !line.is_empty()).map(visible)
    };
    let text = given.or_else(first_line)?;
    let text = text.trim();
    if text.len() > DESCRIPTION_BYTES_MAX {
        fields.drop_field("description", &format!("only its first {DESCRIPTION_BYTES_MAX} bytes"));
    }
    Some(text[..text.floor_char_boundary(DESCRIPTION_BYTES_MAX)].trim_end().to_owned())
}

/// A text of a file, for a report: short and visible.
pub(crate) fn quoted(text: &str) -> String {
    let text = visible(text).replace('\n', " ");
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
