//! Tasks: started, shown, decided and paid.

pub(crate) mod approvals;
pub(crate) mod budget;
pub(crate) mod chat;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod tasks;
pub(crate) mod usage;
