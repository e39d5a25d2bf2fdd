//! `antiphon journal repair`.

use std::path::Path;

use antiphon_core::TaskId;
use antiphon_project::project::{Project, RepairOutcome};
use antiphon_sqlite::{Repaired, Verified};
use clap::Args;
use serde::Serialize;

use super::progress::with_progress;
use crate::failure::Failure;
use crate::terminal;

/// Most task ids that are printed.
const TASKS_SHOWN_MAX: usize = 20;

/// Save what can be read of a damaged journal into a new one, and keep the damaged file.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop `antiphon serve` first. A task keeps its events up to the first that cannot be read; if it had not
ended by then, it fails, because what it did after that is unknown. Restore a backup instead if you
have a recent one (`antiphon restore --force FILE`). A sound journal is not changed.

Examples:
  antiphon journal repair
  antiphon journal repair --json | jq .tasks_cut")]
pub(crate) struct Repair {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct RepairedRow<'a> {
    repaired: bool,
    events: u64,
    tasks: u64,
    events_lost: u64,
    tasks_cut: &'a [TaskId],
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a Path>,
}

impl Repair {
    pub(super) async fn run(self, project: &Project) -> Result<(), Failure> {
        let journal = project.clone();
        let done = with_progress(move |step| journal.repair_journal(step)).await??;
        let Repaired { events, tasks, events_lost, tasks_cut, before } = match done {
            RepairOutcome::Repaired(repaired) => repaired,
            RepairOutcome::Sound(found) => return self.print_sound(&found),
        };
        if self.json {
            let (tasks_cut, before) = (tasks_cut.as_slice(), Some(before.as_path()));
            let repaired = true;
            let row = RepairedRow { repaired, events, tasks, events_lost, tasks_cut, before };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        terminal::print(&format!(
            "saved {} of {}; {} could not be read\n",
            terminal::count(events, "event"),
            terminal::count(tasks, "task"),
            terminal::count(events_lost, "event")
        ));
        if !tasks_cut.is_empty() {
            let shown: Vec<&str> =
                tasks_cut.iter().take(TASKS_SHOWN_MAX).map(TaskId::as_str).collect();
            terminal::print(&format!(
                "not complete ({}): {}; those that had not ended have failed\n",
                tasks_cut.len(),
                shown.join(", ")
            ));
        }
        terminal::print(&format!("the damaged journal is kept as {}\n", before.display()));
        Ok(())
    }

    fn print_sound(&self, found: &Verified) -> Result<(), Failure> {
        if !self.json {
            terminal::print("the journal is sound: nothing was changed\n");
            return Ok(());
        }
        let (events, tasks) = (found.events, found.tasks);
        let (repaired, events_lost, tasks_cut, before) = (false, 0, &[][..], None);
        let row = RepairedRow { repaired, events, tasks, events_lost, tasks_cut, before };
        terminal::print(&terminal::json(&row)?);
        Ok(())
    }
}
