//! Names that become values of a label: of tools, models, agents, routes. There may be only so many,
//! whatever models and callers make up.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Values that one label has, at most. Whatever comes behind them is `other`.
pub const LABEL_VALUES_MAX: usize = 200;

/// Series of one metric whose labels go together. Whatever comes behind them is counted as `other`.
pub const SERIES_MAX: usize = 2000;

/// Longest value of a label, in bytes. What is longer is cut.
pub const LABEL_BYTES_MAX: usize = 128;

/// Stands for every name that there is no room for.
pub const OTHER: &str = "other";

/// Stands for a name that nobody gave.
pub const UNKNOWN: &str = "unknown";

/// The value of a label. Cheap to clone.
pub(crate) type Name = Arc<str>;

/// The names of one label.
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
    /// The name itself while there is room, and from then on if it was in time.
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

/// The labels that one metric has had.
#[derive(Debug)]
pub(crate) struct Series<S>(HashSet<S>);

impl<S> Default for Series<S> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

impl<S: Clone + Eq + Hash> Series<S> {
    /// The labels themselves while there is room, and from then on if they were in time.
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
