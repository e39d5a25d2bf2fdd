//! Finds requests: which files changed, and what is to be done about each.

pub(crate) mod changes;
pub(crate) mod requester_files;
pub(crate) mod scanner;
