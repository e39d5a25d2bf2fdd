//! A schedule: time, agent and text.

use antiphon_core::{AgentName, Salience, SourceName};

use super::when::When;

/// Longest text of an event, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Sends a text to an agent's inbox at certain times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Its name, which is also the sender of its events and part of each tick's key.
    pub name: SourceName,
    /// Name of the receiving agent.
    pub agent: AgentName,
    /// When it ticks.
    pub when: When,
    /// Text of the event. When blank, the event has only its sender's name.
    pub body: String,
    /// How urgent the event is; unspecified when absent.
    pub salience: Option<Salience>,
    /// Whether the event starts an idle agent. Otherwise it waits in the inbox for the next turn.
    pub wake: bool,
}
