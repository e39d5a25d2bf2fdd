//! What is different since the last look.

use std::path::PathBuf;

use crate::pages::{Entry, Pages};
use crate::problem::Problem;

/// What is different since the last look. Nothing is told twice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Agents that were not there.
    pub added: Vec<String>,
    /// Agents that are somebody else now, or from elsewhere.
    pub changed: Vec<String>,
    /// Agents that are gone.
    pub removed: Vec<String>,
    /// What is wrong and was not before, or was wrong in another way.
    pub problems: Vec<Problem>,
    /// Files and folders with which nothing is wrong any more; also because they are gone.
    pub mended: Vec<PathBuf>,
}

impl Changes {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn between(before: &Pages, after: &Pages) -> Self {
        let differs = |name: &String, now: &Entry| {
            before
                .entries
                .get(name)
                .is_some_and(|old| old.definition != now.definition || old.path != now.path)
        };
        let names = |pages: &Pages, wanted: &dyn Fn(&String, &Entry) -> bool| -> Vec<String> {
            let found = pages.entries.iter().filter(|(name, entry)| wanted(name, entry));
            found.map(|(name, _)| name.clone()).collect()
        };
        let is_new = |problem: &&Problem| !before.problems.contains(problem);
        let is_mended = |old: &&Problem| !after.problems.iter().any(|now| now.path == old.path);
        Self {
            added: names(after, &|name, _| !before.entries.contains_key(name)),
            changed: names(after, &differs),
            removed: names(before, &|name, _| !after.entries.contains_key(name)),
            problems: after.problems.iter().filter(is_new).cloned().collect(),
            mended: before
                .problems
                .iter()
                .filter(is_mended)
                .map(|problem| problem.path.clone())
                .collect(),
        }
    }
}
