//! A task as the runner sees it: its private folder, its events in the journal, its context.

pub(crate) mod context;
pub(crate) mod folder;
pub(crate) mod journal;
