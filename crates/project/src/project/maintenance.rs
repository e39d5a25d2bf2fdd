//! Changes to the whole journal while no process works with it. Everything here blocks.

use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_sqlite::{
    MaintenanceStep, OpenError, PruneMode, PruneSelection, Pruned, Repaired, SqliteJournal,
    Verified,
};

use super::Project;
use crate::error::ProjectError;

/// What a repair did.
pub enum RepairOutcome {
    /// Nothing: the journal is sound.
    Sound(Verified),
    /// It saved what can be read, and kept the damaged journal.
    Repaired(Repaired),
}

impl Project {
    /// Repairs the journal, if it is damaged.
    pub fn repair_journal(
        &self,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<RepairOutcome, ProjectError> {
        let path = self.journal_path();
        match SqliteJournal::verify_file(&path, step) {
            Ok(found) if found.problems.is_empty() => return Ok(RepairOutcome::Sound(found)),
            Ok(_) | Err(OpenError::Damaged { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let repaired = SqliteJournal::repair(&path, SystemClock.now(), step)?;
        Ok(RepairOutcome::Repaired(repaired))
    }

    /// Removes ended tasks from the journal, then their stored results. Returns of how many tasks it removed results.
    pub fn prune_journal(
        &self,
        selection: PruneSelection,
        mode: PruneMode,
        step: &mut dyn FnMut(MaintenanceStep),
    ) -> Result<(Pruned, usize), ProjectError> {
        let now = SystemClock.now();
        let pruned = SqliteJournal::prune(&self.journal_path(), selection, mode, now, step)?;
        // After the journal: a result without its task is swept later, a task without its result is not.
        let results = match mode {
            PruneMode::DryRun => 0,
            PruneMode::Remove => self.remove_results(&pruned.tasks)?,
        };
        Ok((pruned, results))
    }
}
