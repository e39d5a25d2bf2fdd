//! A list of words: `[read, grep]`, one per line, or `read, grep`.
//!
//! Blank words, duplicates and lists that are too long are refused.

use crate::problem::AgentFileError;
use crate::yaml::{Field, Node, Value};

/// Most entries of a list.
pub const LIST_MAX: usize = 64;

/// Longest entry of a list, in bytes.
pub const WORD_BYTES_MAX: usize = 200;

/// A word with its line.
pub(crate) struct Word {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The words of a field.
pub(crate) fn words(field: &Field) -> Result<Vec<Word>, AgentFileError> {
    let words: Vec<Word> = match &field.value.value {
        Value::Text { text, .. } => {
            let word = |text: &str| Word { line: field.value.line, text: text.trim().to_owned() };
            text.split(',').map(word).collect()
        }
        Value::List(items) => {
            items.iter().map(|item| word(field, item)).collect::<Result<_, _>>()?
        }
        Value::Map(_) => {
            return Err(AgentFileError::new(field.line, format!("`{}` takes a list", field.name)));
        }
    };
    check(field, &words)?;
    Ok(words)
}

/// The text of a value; refuses a list or fields.
pub(crate) fn text<'a>(name: &str, node: &'a Node) -> Result<&'a str, AgentFileError> {
    match &node.value {
        _ if node.is_null() => {
            Err(AgentFileError::new(node.line, format!("`{name}` has no value")))
        }
        Value::Text { text, .. } => Ok(text),
        Value::List(_) | Value::Map(_) => {
            Err(AgentFileError::new(node.line, format!("`{name}` takes a text")))
        }
    }
}

/// Refuses a list with more than [`LIST_MAX`] entries.
pub(crate) fn bounded(field: &Field, entries: usize) -> Result<(), AgentFileError> {
    if entries > LIST_MAX {
        let reason = format!("`{}` has more than {LIST_MAX} entries", field.name);
        return Err(AgentFileError::new(field.line, reason));
    }
    Ok(())
}

fn word(field: &Field, item: &Node) -> Result<Word, AgentFileError> {
    match &item.value {
        Value::Text { text, .. } => Ok(Word { line: item.line, text: text.trim().to_owned() }),
        Value::List(_) | Value::Map(_) => {
            Err(AgentFileError::new(item.line, format!("`{}` takes a list of texts", field.name)))
        }
    }
}

fn check(field: &Field, words: &[Word]) -> Result<(), AgentFileError> {
    let name = &field.name;
    bounded(field, words.len())?;
    for (index, Word { line, text }) in words.iter().enumerate() {
        if text.is_empty() {
            return Err(AgentFileError::new(*line, format!("`{name}` has a blank entry")));
        }
        if text.len() > WORD_BYTES_MAX {
            let reason = format!("an entry of `{name}` has more than {WORD_BYTES_MAX} bytes");
            return Err(AgentFileError::new(*line, reason));
        }
        if words[..index].iter().any(|other| other.text == *text) {
            return Err(AgentFileError::new(*line, format!("`{name}` has `{text}` twice")));
        }
    }
    Ok(())
}
