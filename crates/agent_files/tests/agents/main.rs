//! Agents' files, through the public door: what they say, what is wrong with them, who counts, and
//! keeping up with them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
mod draft;
mod fault;
mod file;
mod guide;
mod hostile;
mod watch;

use std::path::Path;

use antiphon_agent_files::{AgentCatalog, Fault, Folder, parse};
use antiphon_core::AgentDefinition;
use antiphon_core::port::PromptSource;

/// A file that leads to no other.
fn read(stem: &str, text: &str) -> Result<AgentDefinition, Fault> {
    parse(stem, text.as_bytes(), &mut |_: &Path| Err("there is no such file".to_owned()))
}

/// Told its own context, or what was made up.
fn own_words(system_prompt: PromptSource<'_>) -> String {
    match system_prompt {
        PromptSource::Named(agent) => agent.context.clone(),
        PromptSource::AdHoc(prompt) => format!("base\n\n{prompt}"),
    }
}

fn book(folders: Vec<Folder>) -> AgentCatalog {
    AgentCatalog::open(folders, own_words)
}

/// The file of an agent with this description.
fn agent(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nYou work.\n")
}
