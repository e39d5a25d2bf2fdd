//! runner.

pub(crate) mod bounded_model;
pub(crate) mod choose_runner;
pub(crate) mod remote;
pub(crate) mod runner_journal;
