//! What `grep` and `glob` share: a walk through the files of a folder.
//!
//! Files that ignore rules hide are left out, hidden ones unless they are asked for, and
//! [`NEVER_ENTERED`] always. No link is followed: whatever is opened is beneath the folder where
//! the walk begins. It runs on a few threads and ends soon after it is told to stop.

mod deadline;
mod display;
mod folder;
mod globs;
mod notes;
mod number;
mod path;
mod queue;
mod rules;
mod search_start;
mod walk;

pub(crate) use deadline::Deadline;
pub(crate) use display::{LINE_CHARS_MAX, cut_around, grouped};
pub(crate) use folder::{Folder, Modified};
pub(crate) use globs::Globs;
pub(crate) use notes::{Names, Notes};
pub(crate) use number::within;
pub(crate) use path::{RelPath, as_path};
pub(crate) use search_start::{SearchStart, StartKind};
pub(crate) use walk::{Visitor, Walk};

/// Never entered nor shown, wherever they are.
pub(crate) const NEVER_ENTERED: [&str; 2] = [".git", ".antiphon"];

/// Most bytes of what was found: what comes after is left out, and the result says so.
pub(crate) const OUTPUT_BYTES_MAX: usize = 32 * 1024;

/// Room for what a result says beside what was found.
pub(crate) const NOTES_BYTES_MAX: usize = 32 * 1024;
