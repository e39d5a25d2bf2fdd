//! The prompt: its editor and keys, its history, and what can follow what is typed.

pub(crate) mod choice;
pub(crate) mod command;
pub(crate) mod completion;
pub(crate) mod composer;
pub(crate) mod history;
pub(crate) mod keymap;
pub(crate) mod line_input;
pub(crate) mod project_files;
pub(crate) mod prompt_entry;
