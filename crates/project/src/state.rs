//! The user's own state: everything about a project that is believed. A project's folder may come with a
//! clone; the state folder never does.
//!
//! | file       | subject                                                       |
//! |------------|---------------------------------------------------------------|
//! | `location` | where the state folders are, and the name of a project's own   |
//! | `identity` | which folder a root was: device, inode and time of creation      |
//! | `record`   | `project.json` in a state folder: the root and its identity   |
//! | `registry` | all state folders of the user: list, move, forget             |
//!
//! A state folder holds the journal and its lock, the token, the API keys, the socket and record of a
//! server, start times of schedules, workers, terminals, temporary files, long tool results and the cache of
//! MCP tools. Only the user may read it.

pub(crate) mod identity;
pub(crate) mod location;
pub(crate) mod record;
pub mod registry;

pub use location::{STATE_VARIABLE, state_base, state_folder};
