//! A command: a prompt in a markdown file, with places for arguments.
//!
//! Nothing of it is run or read: a command of a shell and the name of a file stay text.

use antiphon_agent_files::{AgentFileError, LenientFile};
use antiphon_core::visible;

use crate::fields::{Fields, description, quoted};

/// Longest arguments of a command, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// Longest prompt that a command becomes, in bytes.
pub const EXPANDED_BYTES_MAX: usize = 1024 * 1024;

/// Longest hint about arguments, in characters.
const HINT_CHARS_MAX: usize = 100;

/// Stands behind a prompt that shows commands of a shell.
const NOT_RUN: &str = "(The commands between !` and ` above were not run. Run them with your tools if you need \
                       what they print.)";

/// Fields that have no effect here, and why.
const DROPPED: [(&str, &str); 2] = [
    ("allowed-tools", "a command allows nothing: its task has the permissions of every task"),
    ("disable-model-invocation", "no model starts a command"),
];

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCommand {
    /// What it does, for a list.
    pub description: String,
    /// What its arguments are, for a list.
    pub hint: Option<String>,
    /// The model that its file names, as it is written there.
    pub model: Option<String>,
    /// The agent that its file names.
    pub agent: Option<String>,
    /// The prompt, before arguments are put into it.
    pub body: String,
    /// What its file says and is not used, and why, one line each.
    pub dropped: Vec<String>,
}

/// Why a command has no prompt for its arguments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Over [`ARGUMENTS_BYTES_MAX`].
    #[error("the arguments have {bytes} bytes: at most {ARGUMENTS_BYTES_MAX} are taken")]
    Arguments {
        /// Their length.
        bytes: usize,
    },
    /// Over [`EXPANDED_BYTES_MAX`].
    #[error("the prompt would have more than {EXPANDED_BYTES_MAX} bytes: give shorter arguments")]
    TooLong,
}

impl PromptCommand {
    /// Reads the bytes of a file.
    pub fn read(bytes: &[u8]) -> Result<Self, AgentFileError> {
        let file = LenientFile::read(bytes)?;
        if file.body.is_empty() {
            return Err(AgentFileError::refused(1, "it has no text: write the prompt"));
        }
        let mut fields = Fields::new(file.fields.unwrap_or_default());
        let description = description(&mut fields, &file.body).unwrap_or_default();
        let hint = fields.text("argument-hint").or_else(|| brackets(&mut fields));
        Ok(Self {
            description: description.lines().next().unwrap_or_default().to_owned(),
            hint: hint.map(|hint| hint.chars().take(HINT_CHARS_MAX).collect()),
            model: fields
                .text("model")
                .filter(|name| !["inherit", "default"].contains(&name.as_str())),
            agent: fields.text("agent"),
            body: file.body,
            dropped: fields.finish(&DROPPED),
        })
    }

    /// The prompt with `arguments` in its places: `$ARGUMENTS` is all of them, `$1` to `$9` are single ones. Text of
    /// an argument is never read as a place. Without a place, the arguments stand at the end.
    pub fn expand(&self, arguments: &[String]) -> Result<String, CommandError> {
        let all = arguments.join(" ");
        if all.len() > ARGUMENTS_BYTES_MAX {
            return Err(CommandError::Arguments { bytes: all.len() });
        }
        let (mut text, mut rest, mut has_place) = (String::new(), self.body.as_str(), false);
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            let (value, length) = place(&rest[at..], &all, arguments);
            has_place |= value.is_some();
            text.push_str(value.unwrap_or(&rest[at..at + length]));
            rest = &rest[at + length..];
            if text.len() > EXPANDED_BYTES_MAX {
                return Err(CommandError::TooLong);
            }
        }
        text.push_str(rest);
        if !has_place && !all.trim().is_empty() {
            text.push_str("\n\nArguments: ");
            text.push_str(&all);
        }
        if shows_commands(&self.body) {
            text.push_str("\n\n");
            text.push_str(NOT_RUN);
        }
        if text.len() > EXPANDED_BYTES_MAX { Err(CommandError::TooLong) } else { Ok(text) }
    }
}

/// `argument-hint: [file]` is a list to YAML, and a text to its writers.
fn brackets(fields: &mut Fields) -> Option<String> {
    let at = fields.dropped.iter().position(|line| line.starts_with("`argument-hint`"))?;
    let line = fields.dropped.remove(at);
    let text = line.strip_prefix("`argument-hint`: ")?.strip_suffix(" is no text")?;
    Some(visible(&text.replace('"', "")))
}

/// What stands in a place at the beginning of `text`, and the length of the place. Without a value there is none.
fn place<'a>(text: &str, all: &'a str, arguments: &'a [String]) -> (Option<&'a str>, usize) {
    const ALL: &str = "$ARGUMENTS";
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if text.strip_prefix(ALL).is_some_and(is_end) {
        return (Some(all), ALL.len());
    }
    match text.as_bytes().get(1) {
        Some(digit @ b'1'..=b'9') if is_end(&text[2..]) => {
            let index = usize::from(digit - b'1');
            (Some(arguments.get(index).map_or("", String::as_str)), 2)
        }
        Some(_) | None => (None, 1),
    }
}

fn shows_commands(body: &str) -> bool {
    body.split("!`").skip(1).any(|rest| rest.contains('`'))
}

/// Arguments as they are typed: between blanks, or in quotes. A quote that does not end is a character.
pub fn split_arguments(typed: &str) -> Vec<String> {
    let (mut found, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut rest = typed.char_indices();
    while let Some((at, c)) = rest.next() {
        if c.is_whitespace() {
            if is_word {
                found.push(std::mem::take(&mut word));
            }
            is_word = false;
            continue;
        }
        is_word = true;
        let behind = &typed[at + c.len_utf8()..];
        match behind.find(c).filter(|_| c == '"' || c == '\'') {
            Some(length) => {
                word.push_str(&behind[..length]);
                let count = behind[..length].chars().count();
                // The end of the quote, too.
                let _ = rest.nth(count);
            }
            None => word.push(c),
        }
    }
    if is_word {
        found.push(word);
    }
    found
}

impl PromptCommand {
    /// What it would do, for the question about trust, one line each.
    pub fn effects(&self, name: &str) -> Vec<String> {
        let mut effects = vec![format!("adds the command /{}: a prompt", quoted(name))];
        effects.extend(self.agent.iter().map(|agent| format!("for the agent {}", quoted(agent))));
        effects.extend(self.model.iter().map(|model| format!("for the model {}", quoted(model))));
        effects
    }
}
