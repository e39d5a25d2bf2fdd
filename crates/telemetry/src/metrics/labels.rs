//! Label values: names of tools, models, agents and routes. Their number is bounded, for any input of
//! models and clients.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Most values of one label. Further ones become `other`.
pub const LABEL_VALUES_MAX: usize = 200;

/// Most combinations of labels of one metric. Further ones are counted as `other`.
pub const SERIES_MAX: usize = 2000;

/// Longest value of a label, in bytes. A longer one is truncated.
pub const LABEL_BYTES_MAX: usize = 128;

/// Replaces names above the limit.
pub const OTHER: &str = "other";

/// Replaces a missing name.
pub const UNKNOWN: &str = "unknown";

/// A label value. Cheap to clone.
pub(crate) type Name = Arc<str>;

/// The values of one label.
#[derive(Debug)]
pub(crate) struct Names {
    known: HashSet<Name>,
    other: Name,
    unknown: Name,
}

impl Default for Names {
    fn default() -> Self {
        Self { known: HashSet::new(), other: OTHER.into(), unknown: UNKNOWN.into() }
    }
}

impl Names {
    /// The name itself if it is known or below the limit, else [`OTHER`].
    pub(crate) fn get(&mut self, text: &str) -> Name {
        let text = text[..text.floor_char_boundary(LABEL_BYTES_MAX)].trim();
        if text.is_empty() {
            return Arc::clone(&self.unknown);
        }
        if let Some(known) = self.known.get(text) {
            return Arc::clone(known);
        }
        if self.known.len() >= LABEL_VALUES_MAX {
            return Arc::clone(&self.other);
        }
        let name: Name = text.into();
        self.known.insert(Arc::clone(&name));
        name
    }
}

/// The label combinations of one metric.
#[derive(Debug)]
pub(crate) struct Series<S>(HashSet<S>);

impl<S> Default for Series<S> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<S: Clone + Eq + Hash> Series<S> {
    /// The labels themselves if they are known or below the limit, else `other`.
    pub(crate) fn get(&mut self, labels: S, other: impl FnOnce(S) -> S) -> S {
        if self.0.contains(&labels) {
            return labels;
        }
        if self.0.len() >= SERIES_MAX {
            return other(labels);
        }
        self.0.insert(labels.clone());
        labels
    }
}
