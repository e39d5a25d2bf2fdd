//! The journal and the state of projects.

pub(crate) mod backup;
pub(crate) mod journal;
pub(crate) mod projects;
pub(crate) mod restore;
