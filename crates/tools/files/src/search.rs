//! Walks the files of a folder, for `grep` and `glob`.
//!
//! The walk skips ignored files, hidden files unless the call includes them, and [`NEVER_ENTERED`]
//! always. It follows no links, so every opened file is beneath the start folder. It runs on a few
//! threads and ends soon after a stop request.

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

/// Most bytes of matches in a result. The rest is omitted, and the result says so.
pub(crate) const OUTPUT_BYTES_MAX: usize = 32 * 1024;

/// Bytes reserved for the notes of a result.
pub(crate) const NOTES_BYTES_MAX: usize = 32 * 1024;
