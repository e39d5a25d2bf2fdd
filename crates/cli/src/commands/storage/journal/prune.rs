//! `antiphon journal prune`.

use antiphon_core::TaskId;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_project::project::Project;
use antiphon_sqlite::{PruneMode, PruneSelection, Pruned};
use antiphon_view::text::size;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clap::Args;
use serde::Serialize;

use super::progress::with_progress;
use crate::failure::Failure;
use crate::terminal;

/// Remove ended tasks with their events, stored results and sessions, and give the space back.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop `antiphon serve` first. Tasks of one tree or one session, and those whose conversation another
task continues, are removed together, or not at all when one of them has not ended. The newest task
stays. Of each removed task its id, its status and its idempotency keys stay, and so does what it
spent. With --before and --keep, a task must meet both.

Examples:
  antiphon journal prune --before 2026-01-01 --dry-run
  antiphon journal prune --before 90d
  antiphon journal prune --keep 1000
  antiphon journal prune --before 30d --keep 100 --json | jq .tasks")]
pub(crate) struct Prune {
    /// Remove tasks that ended before this day (UTC), this time, or this many days ago: `2026-01-31`,
    /// `2026-01-31T12:00:00Z`, `90d`.
    #[arg(long, value_name = "DATE", required_unless_present = "keep", value_parser = parse_before)]
    before: Option<DateTime<Utc>>,
    /// Remove all but the N tasks that ended last.
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Change nothing, and print what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct PrunedRow<'a> {
    dry_run: bool,
    tasks: &'a [TaskId],
    events: u64,
    sessions: u64,
    results: usize,
    needed: u64,
    bytes_before: u64,
    bytes_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compacted: Option<&'a str>,
}

impl Prune {
    pub(super) async fn run(self, project: &Project) -> Result<(), Failure> {
        let selection = PruneSelection { ended_before: self.before, keep: self.keep };
        let mode = if self.dry_run { PruneMode::DryRun } else { PruneMode::Remove };
        let journal = project.clone();
        let pruned = with_progress(move |step| journal.prune_journal(selection, mode, step));
        let (pruned, results) = pruned.await??;
        self.print(&pruned, results)
    }

    fn print(&self, pruned: &Pruned, results: usize) -> Result<(), Failure> {
        let Pruned { tasks, events, sessions, needed, bytes_before, bytes_after, not_compacted } =
            pruned;
        if self.json {
            let row = PrunedRow {
                dry_run: self.dry_run,
                tasks,
                events: *events,
                sessions: *sessions,
                results,
                needed: *needed,
                bytes_before: *bytes_before,
                bytes_after: *bytes_after,
                not_compacted: not_compacted.as_deref(),
            };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        let done = if self.dry_run { "would remove" } else { "removed" };
        terminal::print(&format!(
            "{done} {} with {} and {}\n",
            terminal::count(tasks.len() as u64, "task"),
            terminal::count(*events, "event"),
            terminal::count(*sessions, "session")
        ));
        if *needed > 0 {
            terminal::print(&format!(
                "{} that meet the conditions stay: they belong to tasks that have not ended or do not meet them, \
                 or are the newest\n",
                terminal::count(*needed, "ended task")
            ));
        }
        if !self.dry_run && !tasks.is_empty() {
            terminal::print(&format!("{} → {}\n", size(*bytes_before), size(*bytes_after)));
        }
        if let Some(reason) = not_compacted {
            terminal::print(&format!(
                "the space could not be given back to the disk ({reason}): new events use it. Make room and run \
                 `antiphon journal compact`\n"
            ));
        }
        Ok(())
    }
}

/// A day, a time, or a number of days ago.
fn parse_before(text: &str) -> Result<DateTime<Utc>, String> {
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        let ago = TimeDelta::days(i64::from(days));
        return SystemClock.now().checked_sub_signed(ago).ok_or_else(|| "too long ago".to_owned());
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.with_timezone(&Utc));
    }
    let day: NaiveDate = text.parse().map_err(|_| {
        "use a day (2026-01-31), a time (2026-01-31T12:00:00Z) or days (90d)".to_owned()
    })?;
    Ok(day.and_time(chrono::NaiveTime::MIN).and_utc())
}
