//! Prompts of this project, the newest last. They are kept in the state folder, which only the user can read.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use antiphon_private_file::{Durability, write_atomic};

/// Prompts that are kept.
const PROMPTS_MAX: usize = 1000;

/// Bytes of a prompt that is kept. A longer one is not.
const PROMPT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the file that are read.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Earlier prompts, and the one that is shown.
pub(crate) struct History {
    path: PathBuf,
    prompts: Vec<String>,
    /// Index of the shown prompt; the number of prompts when none is shown.
    shown: usize,
    /// What was written before an earlier prompt was shown.
    draft: String,
}

impl History {
    /// Reads the file. One that cannot be read is an empty history.
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = read(&path).unwrap_or_default();
        let prompts: Vec<String> = text.lines().map(unescape).collect();
        let shown = prompts.len();
        Self { path, prompts, shown, draft: String::new() }
    }

    /// Adds a prompt and writes the file.
    pub(crate) fn add(&mut self, prompt: &str) -> io::Result<()> {
        if prompt.trim().is_empty() || prompt.len() > PROMPT_BYTES_MAX {
            return Ok(());
        }
        if self.prompts.last().is_none_or(|last| last != prompt) {
            // Other terminals of the project add theirs.
            let mut prompts = Self::read(self.path.clone()).prompts;
            prompts.push(prompt.to_owned());
            let first = prompts.len().saturating_sub(PROMPTS_MAX);
            self.prompts = prompts.split_off(first);
            write(&self.path, &self.prompts)?;
        }
        self.reset();
        Ok(())
    }

    /// No earlier prompt is shown any more.
    pub(crate) fn reset(&mut self) {
        self.shown = self.prompts.len();
        self.draft.clear();
    }

    /// The prompt before the shown one that begins with what was written first.
    pub(crate) fn earlier(&mut self, current: &str) -> Option<&str> {
        if self.shown == self.prompts.len() {
            current.clone_into(&mut self.draft);
        }
        let found = self.prompts[..self.shown].iter().rposition(|prompt| prompt != current)?;
        self.shown = found;
        self.prompts.get(found).map(String::as_str)
    }

    /// The prompt behind the shown one, or what was written before.
    pub(crate) fn later(&mut self) -> Option<&str> {
        if self.shown >= self.prompts.len() {
            return None;
        }
        self.shown += 1;
        Some(self.prompts.get(self.shown).map_or(self.draft.as_str(), String::as_str))
    }

    /// Earlier prompts with this text, the newest first, each once.
    pub(crate) fn found(&self, text: &str) -> Vec<&str> {
        let text = text.to_lowercase();
        let mut found: Vec<&str> = Vec::new();
        for prompt in self.prompts.iter().rev() {
            if prompt.to_lowercase().contains(&text) && !found.contains(&prompt.as_str()) {
                found.push(prompt);
            }
        }
        found
    }
}

/// The file, unless another user can change it or it is too long to be one of ours.
fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = antiphon_private_file::open(path).ok()?;
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

fn write(path: &Path, prompts: &[String]) -> io::Result<()> {
    let lines: Vec<String> = prompts.iter().map(|prompt| escape(prompt)).collect();
    write_atomic(path, (lines.join("\n") + "\n").as_bytes(), Durability::Buffered)
}

/// A prompt on one line.
fn escape(prompt: &str) -> String {
    prompt.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some(other) => text.push(other),
                None => {}
            },
            (c, false) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_kept_for_the_next_start_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompts");
        let mut history = History::read(path.clone());
        for prompt in ["one", "two\nlines \\ and a backslash", "two\nlines \\ and a backslash"] {
            history.add(prompt).unwrap();
        }
        let mut history = History::read(path);
        assert_eq!(history.earlier("draft"), Some("two\nlines \\ and a backslash"));
        let shown = "two\nlines \\ and a backslash";
        assert_eq!(history.earlier(shown), Some("one"));
        assert_eq!(history.earlier("one"), None);
        assert_eq!(history.later(), Some(shown));
        assert_eq!(history.later(), Some("draft"));
        assert_eq!(history.later(), None);
        assert_eq!(history.found("ONE"), ["one"]);
    }
}
