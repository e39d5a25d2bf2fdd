//! Agent files through the public API: fields, problems, precedence of folders, and watching.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod catalog;
mod draft;
mod fault;
mod file;
mod guide;
mod hostile;
mod watch;

use std::path::Path;

use antiphon_agent_files::{AgentCatalog, AgentFileError, Folder, parse};
use antiphon_core::AgentDefinition;
use antiphon_core::port::PromptSource;

/// Parses a file that refers to no other.
fn read(stem: &str, text: &str) -> Result<AgentDefinition, AgentFileError> {
    parse(stem, text.as_bytes(), &mut |_: &Path| Err("there is no such file".to_owned()))
}

/// The context alone, or a base prompt and the ad-hoc prompt.
fn test_prompt(system_prompt: PromptSource<'_>) -> String {
    match system_prompt {
        PromptSource::Named(agent) => agent.context.clone(),
        PromptSource::AdHoc(prompt) => format!("base\n\n{prompt}"),
    }
}

fn catalog(folders: Vec<Folder>) -> AgentCatalog {
    AgentCatalog::open(folders, test_prompt)
}

/// The file of an agent with this description.
fn agent(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nYou work.\n")
}
