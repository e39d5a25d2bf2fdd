//! A new agent: a file with everything that can be said in it, explained.
//!
//! It is written whole or not at all, and never over another.

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use antiphon_core::{AgentName, ModelRef, visible};
use serde_json::Value;

use crate::folder::Folder;
use crate::parse::parse;
use crate::problem::Fault;

/// What a new agent begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its name, and its file's.
    pub name: AgentName,
    /// What it is good for; something to replace when absent.
    pub description: Option<String>,
    /// Who answers; the caller's model when absent.
    pub model: Option<ModelRef>,
}

/// Why there is no new file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// Choose another name, or edit the file.
    #[error("{} is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Say it otherwise.
    #[error("it would be no agent: {0}")]
    Refused(Fault),
    /// See to the folder.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// Writes the file of a new agent and tells where it is. Makes the folder if it is not there.
pub fn new_file(folder: &Folder, draft: &Draft) -> Result<PathBuf, DraftError> {
    let path = folder.path.join(format!("{}.md", draft.name));
    let unwritable = |reason: String| DraftError::Unwritable { path: path.clone(), reason };
    let text = draft.text();
    let mut nothing_beside = |_: &std::path::Path| Err("there is no such file".to_owned());
    parse(draft.name.as_str(), text.as_bytes(), &mut nothing_beside)
        .map_err(DraftError::Refused)?;
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
    fn text(&self) -> String {
        let description = self.description.as_deref().unwrap_or("Say in a line what it is for.");
        // A JSON text is a YAML text in quotes.
        let description = Value::from(visible(description).trim()).to_string();
        let model = match &self.model {
            Some(model) => format!("model: {}", Value::from(model.to_string())),
            None => "# model: anthropic/claude-sonnet-4-5".to_owned(),
        };
        TEMPLATE
            .replace("{name}", self.name.as_str())
            .replace("{model}", &model)
            .replace("{description}", &description)
    }
}

/// `name` is in quotes: it may be a number.
const TEMPLATE: &str = r#"---
# What the agent is called: the name of this file.
name: "{name}"

# What it is good for. Whoever may call it decides by this.
description: {description}

# Who answers, as PROVIDER/MODEL, and who does when that one cannot. Absent: the caller's model.
{model}
# fallbacks: [openai/gpt-5, local/qwen3]

# The tools it gets, of those its caller has. Absent: all of them.
# tools: read, grep, glob

# The agents it may call: a list, or `any`. Absent: nobody.
# agents: [tester]

# Where it may run, the best first. Absent: here.
# runtimes: [sandbox, local]

# How far it may go, with everything it dispatches. Absent: not limited.
# limits:
#   turns: 20
#   cost_usd: 0.50

# Requests of these intents never wake it.
# silent_intents: [status_changed]

# The JSON Schemas of what comes with requests, by intent: here, or the path of a file.
# intents:
#   review:
#     type: object
#     properties: { branch: { type: string } }
#     required: [branch]

# The JSON Schema of its result: here, or the path of a file beneath this folder.
# output_schema:
#   type: object
#   properties:
#     verdict: { enum: [approve, reject] }
#   required: [verdict]
---
You are {name}. Say here who the agent is, how it works, what it must not do, and what its answer
looks like. All of this is what the agent is told before anything else.
"#;
