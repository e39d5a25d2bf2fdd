//! The file of a new agent, with every field explained.
//!
//! It is written whole or not at all, and never replaces another file.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use antiphon_core::{AgentName, ModelRef, visible};
use serde_json::Value;

use crate::folder::Folder;
use crate::parse::parse;
use crate::problem::AgentFileError;

/// The first values of a new agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its name; the file is `NAME.md`.
    pub name: AgentName,
    /// What the agent does; a placeholder when absent.
    pub description: Option<String>,
    /// Its model; the caller's model when absent.
    pub model: Option<ModelRef>,
}

/// Why the file was not created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// A file of that name exists: choose another name, or edit it.
    #[error("{} exists already", path.display())]
    Exists {
        /// Path of the file.
        path: PathBuf,
    },
    /// The values do not make a valid agent.
    #[error("not a valid agent: {0}")]
    Refused(AgentFileError),
    /// The file or its folder cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
}

/// Writes the file of a new agent and returns its path. Creates the folder if it is missing.
pub fn new_file(folder: &Folder, draft: &Draft) -> Result<PathBuf, DraftError> {
    let path = folder.path.join(format!("{}.md", draft.name));
    let unwritable = |reason: String| DraftError::Unwritable { path: path.clone(), reason };
    let text = draft.text();
    let mut no_files = |_: &std::path::Path| Err("there is no such file".to_owned());
    parse(draft.name.as_str(), text.as_bytes(), &mut no_files).map_err(DraftError::Refused)?;
    if folder.open().map_err(unwritable)?.is_none() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder.path);
        made.map_err(|error| unwritable(error.to_string()))?;
    }
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(&folder.path)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    let file = write().map_err(|error: std::io::Error| unwritable(error.to_string()))?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(path),
        Err(failed) if failed.error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(DraftError::Exists { path })
        }
        Err(failed) => Err(unwritable(failed.error.to_string())),
    }
}

impl Draft {
    /// What the agent does, or a placeholder, on one line.
    pub fn description(&self) -> String {
        let description =
            self.description.as_deref().unwrap_or("Describe in one line what it does.");
        visible(description).trim().to_owned()
    }

    /// The first system prompt of the agent.
    pub fn context(&self) -> String {
        CONTEXT.replace("{name}", self.name.as_str())
    }

    fn text(&self) -> String {
        // A JSON string is a quoted YAML string.
        let description = Value::from(self.description()).to_string();
        let model = match &self.model {
            Some(model) => format!("model: {}", Value::from(model.to_string())),
            None => "# model: anthropic/claude-sonnet-4-5".to_owned(),
        };
        TEMPLATE
            .replace("{name}", self.name.as_str())
            .replace("{model}", &model)
            .replace("{description}", &description)
            + &self.context()
            + "\n"
    }
}

const CONTEXT: &str = "\
You are {name}. Describe here the agent's role, how it works, what it must not do, and what its answer
looks like. This text is its system prompt.";

/// `name` is quoted because it may look like a number.
const TEMPLATE: &str = r#"---
# Name of the agent: the name of this file.
name: "{name}"

# What the agent does. Agents that may call it decide by this text.
description: {description}

# Model as PROVIDER/MODEL, and the models to ask when it cannot answer. Absent: the caller's model.
{model}
# fallbacks: [openai/gpt-5, local/qwen3]

# Its tools. Absent: every tool.
# tools: read, grep, glob

# Tools that change something and whose calls of one answer may run side by side. Absent: one after the other.
# parallel_tools: bash

# Agents it may call: a list, or `any`. Absent: none.
# agents: [tester]

# Where it may run, in order of preference. Absent: local.
# runtimes: [sandbox, local]

# Limits of a task and of the tasks below it. Absent: not limited.
# limits:
#   turns: 20
#   cost_usd: 0.50

# Requests with these intents never start a turn.
# silent_intents: [status_changed]

# JSON Schemas of the parameters of requests, by intent: inline, or the path of a file.
# intents:
#   review:
#     type: object
#     properties: { branch: { type: string } }
#     required: [branch]

# JSON Schema of its result: inline, or the path of a file below this folder.
# output_schema:
#   type: object
#   properties:
#     verdict: { enum: [approve, reject] }
#   required: [verdict]
---
"#;
