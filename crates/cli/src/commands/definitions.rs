//! Agents, models and prompts.

pub(crate) mod agents;
pub(crate) mod attach;
pub(crate) mod models;
pub(crate) mod prompt;
