//! A change of an agent's definition.

pub use antiphon_api::AgentChange;
