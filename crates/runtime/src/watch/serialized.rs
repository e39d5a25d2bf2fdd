//! An event or a delta with its JSON, shared by all who watch it.

use std::sync::{Arc, OnceLock};

use antiphon_core::Event;
use serde::Serialize;

use crate::watch::delta::Delta;

/// A value, serialized once for all who watch it.
#[derive(Debug)]
pub struct Serialized<T> {
    value: T,
    json: OnceLock<String>,
}

/// An event of the journal, serialized once for all followers.
pub type SerializedEvent = Serialized<Event>;

/// A delta, serialized once for all watchers.
pub type SerializedDelta = Serialized<Delta>;

impl<T: Serialize> Serialized<T> {
    /// The value as JSON, serialized on first use.
    pub fn json(&self) -> Result<&str, serde_json::Error> {
        if let Some(json) = self.json.get() {
            return Ok(json);
        }
        let json = serde_json::to_string(&self.value)?;
        Ok(self.json.get_or_init(|| json))
    }
}

impl<T> Serialized<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value, json: OnceLock::new() }
    }

    /// The value.
    pub fn value(&self) -> &T {
        &self.value
    }

    #[cfg(test)]
    pub(crate) fn is_serialized(&self) -> bool {
        self.json.get().is_some()
    }
}

impl<T: Clone> Serialized<T> {
    /// The value, cloned when it is shared.
    pub fn into_value(shared: Arc<Self>) -> T {
        Arc::try_unwrap(shared).map_or_else(|shared| shared.value.clone(), |own| own.value)
    }
}
