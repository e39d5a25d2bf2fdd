//! One schedule: when, to whom, and what.

use antiphon_core::{AgentName, Salience, SourceName};

use crate::when::When;

/// Longest text of an event, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// When which agent is told what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// What it is called, and where its events say they come from. Part of the key of every tick.
    pub name: SourceName,
    /// Whose inbox.
    pub agent: AgentName,
    /// When.
    pub when: When,
    /// The text of the event. When it is blank, the event says no more than its name.
    pub body: String,
    /// How urgent the event is.
    pub salience: Option<Salience>,
    /// Whether the event wakes an agent that has nothing to do. Otherwise it waits for its next turn.
    pub wake: bool,
}
