//! Front matter of files that other programs wrote: as YAML if it is, else line by line.
//!
//! Other programs accept texts that are no YAML, such as `description: Use it when: …`. Limits of length and characters
//! are those of agent files. A field that is given twice is refused: two readers could believe different ones.

use serde_json::{Value, json};

use crate::markdown::Markdown;
use crate::problem::AgentFileError;
use crate::yaml;

/// A file with its fields as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct LenientFile {
    /// The fields of its front matter, in order; `None` without front matter.
    pub fields: Option<Vec<(String, Value)>>,
    /// The text behind the front matter, with hidden characters escaped; it may be blank.
    pub body: String,
}

impl LenientFile {
    /// Reads the bytes of a file.
    pub fn read(bytes: &[u8]) -> Result<Self, AgentFileError> {
        let markdown = Markdown::read(bytes)?;
        let body = markdown.body().trim().to_owned();
        let Some(front) = &markdown.front else { return Ok(Self { fields: None, body }) };
        let fields = match as_yaml(front) {
            Ok(fields) => fields,
            Err(_) => line_by_line(front)?,
        };
        Ok(Self { fields: Some(fields), body })
    }
}

fn as_yaml(front: &str) -> Result<Vec<(String, Value)>, AgentFileError> {
    let fields = yaml::read(front, 2)?.into_iter();
    fields.map(|field| Ok((field.name, field.value.to_json()?))).collect()
}

/// A field and the lines below it.
struct Lines<'a> {
    name: &'a str,
    first: &'a str,
    more: Vec<&'a str>,
}

/// Each line `NAME: TEXT` without indent begins a field. Other lines belong to the field before.
fn line_by_line(front: &str) -> Result<Vec<(String, Value)>, AgentFileError> {
    let mut found: Vec<Lines<'_>> = Vec::new();
    for (index, line) in front.lines().enumerate() {
        let Some((name, first)) = field(line) else {
            if let Some(last) = found.last_mut() {
                last.more.push(line);
            }
            continue;
        };
        if found.iter().any(|known| known.name == name) {
            let reason = format!("`{name}` is defined twice");
            return Err(AgentFileError::new(index + 2, reason));
        }
        found.push(Lines { name, first, more: Vec::new() });
    }
    Ok(found.iter().map(|lines| (lines.name.to_owned(), lines.value())).collect())
}

fn field(line: &str) -> Option<(&str, &str)> {
    let (name, text) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let is_plain = !name.is_empty() && name.chars().all(is_name) && !name.starts_with('-');
    let is_separated = text.is_empty() || text.starts_with([' ', '\t']);
    (is_plain && is_separated).then(|| (name, text.trim()))
}

impl Lines<'_> {
    fn value(&self) -> Value {
        let more: Vec<&str> =
            self.more.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        let is_block = ["|", "|-", "|+", ">", ">-", ">+"].contains(&self.first);
        let first = if is_block { "" } else { unquoted(self.first) };
        let items: Option<Vec<&str>> = more
            .iter()
            .map(|line| line.strip_prefix('-').map(|item| unquoted(item.trim())))
            .collect();
        match items {
            Some(items) if first.is_empty() && !items.is_empty() => json!(items),
            Some(_) | None => {
                let texts = std::iter::once(first).chain(more).filter(|text| !text.is_empty());
                json!(texts.collect::<Vec<_>>().join("\n"))
            }
        }
    }
}

fn unquoted(text: &str) -> &str {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('"').or_else(|| inside('\'')).unwrap_or(text)
}
