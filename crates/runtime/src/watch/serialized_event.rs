//! An event of the journal with its JSON, shared by all followers.

use std::sync::{Arc, OnceLock};

use antiphon_core::Event;

/// An event of the journal, serialized once for all followers.
#[derive(Debug)]
pub struct SerializedEvent {
    event: Event,
    json: OnceLock<String>,
}

impl SerializedEvent {
    pub(crate) fn new(event: Event) -> Self {
        Self { event, json: OnceLock::new() }
    }

    /// The event.
    pub fn event(&self) -> &Event {
        &self.event
    }

    /// The event as JSON, serialized on first use.
    pub fn json(&self) -> Result<&str, serde_json::Error> {
        if let Some(json) = self.json.get() {
            return Ok(json);
        }
        let json = serde_json::to_string(&self.event)?;
        Ok(self.json.get_or_init(|| json))
    }

    /// The event, cloned when it is shared.
    pub(crate) fn into_event(shared: Arc<Self>) -> Event {
        Arc::try_unwrap(shared).map_or_else(|shared| shared.event.clone(), |own| own.event)
    }

    /// Bytes of the JSON, 0 when it is not serialized yet.
    pub(crate) fn json_bytes(&self) -> usize {
        self.json.get().map_or(0, String::len)
    }
}
