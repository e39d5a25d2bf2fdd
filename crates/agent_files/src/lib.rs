//! Agents as markdown files.
//!
//! Each file defines one agent: front matter with its fields between two lines of `---`, then its context.
//! An [`AgentCatalog`] reads the agents of some folders and follows changes. A file that is not valid is a
//! [`Problem`] with line and reason; its last valid version stays in force.
//!
//! ```
//! use antiphon_agent_files::{AgentCatalog, Folder};
//! use antiphon_core::port::{Agents, PromptSource};
//!
//! # fn main() -> std::io::Result<()> {
//! # let project = tempfile::tempdir()?;
//! # let agents = project.path();
//! std::fs::write(
//!     agents.join("reviewer.md"),
//!     "---\ndescription: Reviews a change.\ntools: read, grep\n---\nYou review changes.\n",
//! )?;
//! let catalog = AgentCatalog::open(vec![Folder::project(agents)], |source| match source {
//!     PromptSource::Named(agent) => agent.context.clone(),
//!     PromptSource::AdHoc(prompt) => format!("You are an agent.\n\n{prompt}"),
//! });
//! assert!(catalog.problems().is_empty());
//! let reviewer = catalog.find("reviewer").map(|agent| agent.description.clone());
//! assert_eq!(reviewer.as_deref(), Some("Reviews a change."));
//! # Ok(())
//! # }
//! ```

mod catalog;
mod changes;
mod draft;
mod fields;
mod file_check;
mod folder;
mod folder_watcher;
mod foreign;
mod lenient;
mod limits;
mod list;
mod markdown;
mod parse;
mod problem;
mod schema;
mod snapshot;
mod watch;
mod yaml;

pub use catalog::AgentCatalog;
pub use changes::Changes;
pub use draft::{Draft, DraftError, new_file};
pub use fields::{FIELDS, INTENTS_MAX};
pub use file_check::{CheckedFile, FileCheck};
pub use folder::{AGENTS_MAX, ENTRIES_MAX, Folder, FolderOwner};
pub use foreign::{ForeignAgent, ForeignFormat, Imported};
pub use lenient::LenientFile;
pub use limits::LIMITS;
pub use list::{LIST_MAX, WORD_BYTES_MAX};
pub use markdown::{FILE_BYTES_MAX, FRONT_BYTES_MAX};
pub use parse::{ReadReferenced, parse};
pub use problem::{AgentFileError, Problem, ProblemKind};
pub use schema::SCHEMA_BYTES_MAX;
pub use snapshot::{AgentFileEntry, version_of};
pub use watch::ChangeDetection;
pub use yaml::{NESTING_MAX, NODES_MAX};
