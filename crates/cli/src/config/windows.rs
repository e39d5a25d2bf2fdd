//! Sizes of context windows: the user's own words first, then what comes with this version.

use std::collections::BTreeMap;

use antiphon_core::ModelRef;
use serde::{Deserialize, Serialize};

/// How many tokens a request to a model and its answer may have together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    /// What the user says of single models.
    pub(super) own: BTreeMap<ModelRef, u64>,
    /// What comes with this version, by the beginnings of models' names.
    pub(super) known: BTreeMap<String, u64>,
}

impl Windows {
    /// What the user says, or what is known of the longest beginning of its name.
    pub(crate) fn of(&self, model: &ModelRef) -> Option<u64> {
        let name = model.model().rsplit('/').next().unwrap_or_default();
        let known = self.known.iter().filter(|(beginning, _)| name.starts_with(*beginning));
        let known = known.max_by_key(|(beginning, _)| beginning.len()).map(|(_, tokens)| *tokens);
        self.own.get(model).copied().or(known)
    }
}
