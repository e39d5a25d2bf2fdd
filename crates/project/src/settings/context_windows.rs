//! Sizes of context windows: the user's settings first, then the built-in table.

use std::collections::BTreeMap;

use antiphon_core::ModelRef;
use serde::{Deserialize, Serialize};

/// Most tokens a request to a model and its answer may have together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ContextWindows {
    /// The user's settings of single models.
    pub(super) own: BTreeMap<ModelRef, u64>,
    /// The built-in table, by prefixes of model names.
    pub(super) known: BTreeMap<String, u64>,
}

impl ContextWindows {
    /// The user's setting for a model, else the built-in size of the longest matching name prefix.
    pub fn of(&self, model: &ModelRef) -> Option<u64> {
        let name = model.model().rsplit('/').next().unwrap_or_default();
        let known = self.known.iter().filter(|(prefix, _)| name.starts_with(*prefix));
        let known = known.max_by_key(|(prefix, _)| prefix.len()).map(|(_, tokens)| *tokens);
        self.own.get(model).copied().or(known)
    }
}
