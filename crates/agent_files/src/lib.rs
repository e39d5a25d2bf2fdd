//! Agents as markdown files.
//!
//! A file is an agent: fields in front, between two lines of `---`, and the context behind them. An
//! [`AgentCatalog`] holds the agents of some folders and keeps up with them: a file that cannot be
//! understood is a [`Problem`] that names the line and the reason, and what it last said that could be
//! understood stays in force.
//!
//! ```
//! use antiphon_agent_files::{AgentBook, Folder};
//! use antiphon_core::port::{Agents, Scene};
//!
//! # fn main() -> std::io::Result<()> {
//! # let project = tempfile::tempdir()?;
//! # let agents = project.path();
//! std::fs::write(
//!     agents.join("reviewer.md"),
//!     "---\ndescription: Reviews a change.\ntools: read, grep\n---\nYou review changes.\n",
//! )?;
//! let book = AgentBook::open(vec![Folder::project(agents)], |scene| match scene {
//!     Scene::Named(agent) => agent.context.clone(),
//!     Scene::AdHoc(prompt) => format!("You are an agent.\n\n{prompt}"),
//! });
//! assert!(book.problems().is_empty());
//! let reviewer = book.find("reviewer").map(|agent| agent.description.clone());
//! assert_eq!(reviewer.as_deref(), Some("Reviews a change."));
//! # Ok(())
//! # }
//! ```

mod book;
mod changes;
mod draft;
mod eyes;
mod fields;
mod folder;
mod limits;
mod list;
mod markdown;
mod pages;
mod parse;
mod problem;
mod schema;
mod watch;
mod yaml;

pub use book::AgentCatalog;
pub use changes::Changes;
pub use draft::{Draft, DraftError, new_file};
pub use fields::{FIELDS, INTENTS_MAX};
pub use folder::{AGENTS_MAX, ENTRIES_MAX, Folder, Origin};
pub use limits::LIMITS;
pub use list::{LIST_MAX, WORD_BYTES_MAX};
pub use markdown::{FILE_BYTES_MAX, FRONT_BYTES_MAX};
pub use pages::Entry;
pub use parse::{Beside, parse};
pub use problem::{Fault, Problem};
pub use schema::SCHEMA_BYTES_MAX;
pub use watch::Watching;
pub use yaml::{NESTING_MAX, NODES_MAX};
