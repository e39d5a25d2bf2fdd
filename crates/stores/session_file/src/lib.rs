//! Session file v1: a conversation as one JSON file.
//!
//! [`load`] reads a file or says exactly what is wrong with it and where; it never panics and
//! never reads more than [`FILE_BYTES_MAX`]. [`save`] replaces a file in one step: after a
//! crash there is the old one or the new one, never half of either. What was saved, loaded and
//! saved again has the same bytes; tool arguments have those they came with.

mod file;
mod format;

pub use file::{FILE_BYTES_MAX, LoadError, SaveError, load, save};
pub use format::{FormatError, VERSION, parse, to_json};
