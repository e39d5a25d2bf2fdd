//! Changes between two reads.

use std::path::PathBuf;

use crate::problem::Problem;
use crate::snapshot::{AgentFileEntry, Snapshot};

/// What changed since the last read. Each change is reported once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Names of new agents.
    pub added: Vec<String>,
    /// Names of agents whose definition or file is another one.
    pub changed: Vec<String>,
    /// Names of removed agents.
    pub removed: Vec<String>,
    /// New problems, and problems whose reason changed.
    pub problems: Vec<Problem>,
    /// Files and folders without a problem any more, also because they were removed.
    pub fixed: Vec<PathBuf>,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let differs = |name: &String, now: &AgentFileEntry| {
            before
                .entries
                .get(name)
                .is_some_and(|old| old.definition != now.definition || old.path != now.path)
        };
        let names = |snapshot: &Snapshot,
                     wanted: &dyn Fn(&String, &AgentFileEntry) -> bool|
         -> Vec<String> {
            let found = snapshot.entries.iter().filter(|(name, entry)| wanted(name, entry));
            found.map(|(name, _)| name.clone()).collect()
        };
        let is_new = |problem: &&Problem| !before.problems.contains(problem);
        let is_fixed = |old: &&Problem| !after.problems.iter().any(|now| now.path == old.path);
        Self {
            added: names(after, &|name, _| !before.entries.contains_key(name)),
            changed: names(after, &differs),
            removed: names(before, &|name, _| !after.entries.contains_key(name)),
            problems: after.problems.iter().filter(is_new).cloned().collect(),
            fixed: before
                .problems
                .iter()
                .filter(is_fixed)
                .map(|problem| problem.path.clone())
                .collect(),
        }
    }
}
