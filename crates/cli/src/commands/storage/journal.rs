//! `antiphon journal`: verifies, repairs, compacts and prunes the journal of this project.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use antiphon_core::TaskId;
use antiphon_core::port::{Clock, SystemClock};
use antiphon_project::environment::Environment;
use antiphon_project::project::{Project, RepairOutcome};
use antiphon_sqlite::{
    Compacted, MaintenanceStep, PruneMode, PruneSelection, Pruned, Repaired, SqliteJournal,
    Verified,
};
use antiphon_view::text::size;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use clap::{Args, Subcommand};
use serde::Serialize;

use super::backup::blocking;
use crate::failure::Failure;
use crate::terminal;

/// How often progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Most task ids that `repair` prints.
const TASKS_SHOWN_MAX: usize = 20;

/// Verify, repair, compact or prune the journal of this project (see docs/journal.md).
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  antiphon journal verify
  antiphon journal compact
  antiphon journal prune --keep 100")]
pub(crate) enum Journal {
    Verify(Verify),
    Repair(Repair),
    Compact(Compact),
    Prune(Prune),
}

/// Check every page, every event and the index of the journal, also while a server runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0: the journal is sound. Exit code 1: it is damaged, and the output says where.

Examples:
  antiphon journal verify
  antiphon journal verify --json | jq .problems")]
pub(crate) struct Verify {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

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

/// Give unused space of the journal back to the disk.
#[derive(Debug, Args)]
#[command(after_help = "\
Stop `antiphon serve` first. It needs about as much free space as the journal has afterwards.

Examples:
  antiphon journal compact
  antiphon journal compact --json | jq '.bytes_before - .bytes_after'")]
pub(crate) struct Compact {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

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

impl Journal {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let project = Project::find_existing(environment)?;
        match self {
            Self::Verify(verify) => verify.run(&project).await,
            Self::Repair(repair) => repair.run(&project).await,
            Self::Compact(compact) => compact.run(&project).await,
            Self::Prune(prune) => prune.run(&project).await,
        }
    }
}

#[derive(Serialize)]
struct VerifiedRow<'a> {
    sound: bool,
    events: u64,
    tasks: u64,
    unfinished: u64,
    pruned: u64,
    bytes: u64,
    problems: &'a [String],
}

impl Verify {
    async fn run(self, project: &Project) -> Result<(), Failure> {
        let path = project.journal_path();
        let found = with_progress(move |step| SqliteJournal::verify_file(&path, step)).await??;
        let Verified { events, tasks, unfinished, pruned, bytes, problems } = &found;
        let sound = problems.is_empty();
        if self.json {
            let (events, tasks, unfinished) = (*events, *tasks, *unfinished);
            let (pruned, bytes) = (*pruned, *bytes);
            let row = VerifiedRow { sound, events, tasks, unfinished, pruned, bytes, problems };
            terminal::print(&terminal::json(&row)?);
        } else if sound {
            terminal::print(&format!(
                "sound: {} of {} ({unfinished} unfinished, {pruned} pruned before), {}\n",
                terminal::count(*events, "event"),
                terminal::count(*tasks, "task"),
                size(*bytes)
            ));
        } else {
            for problem in problems {
                terminal::print(&format!("{problem}\n"));
            }
        }
        if sound {
            return Ok(());
        }
        Err(Failure::failed(
            "the journal is damaged: bring back a backup with `antiphon restore --force FILE`, or save what can \
             be read with `antiphon journal repair`",
        ))
    }
}

#[derive(Serialize)]
struct RepairedRow<'a> {
    repaired: bool,
    events: u64,
    tasks: u64,
    events_lost: u64,
    tasks_cut: &'a [TaskId],
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a std::path::Path>,
}

impl Repair {
    async fn run(self, project: &Project) -> Result<(), Failure> {
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

#[derive(Serialize)]
struct CompactedRow {
    bytes_before: u64,
    bytes_after: u64,
}

impl Compact {
    async fn run(self, project: &Project) -> Result<(), Failure> {
        let path = project.journal_path();
        let compacted = with_progress(move |step| SqliteJournal::compact(&path, step)).await??;
        let Compacted { bytes_before, bytes_after } = compacted;
        if self.json {
            terminal::print(&terminal::json(&CompactedRow { bytes_before, bytes_after })?);
        } else {
            terminal::print(&format!("{} → {}\n", size(bytes_before), size(bytes_after)));
        }
        Ok(())
    }
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
    async fn run(self, project: &Project) -> Result<(), Failure> {
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

/// Runs `work` on a blocking thread, and prints what it does once a second.
async fn with_progress<T: Send + 'static>(
    work: impl FnOnce(&mut dyn FnMut(MaintenanceStep)) -> T + Send + 'static,
) -> Result<T, Failure> {
    let (current, began) = (Arc::new(Mutex::new(None)), Instant::now());
    let reported = Arc::clone(&current);
    let mut done = std::pin::pin!(blocking(move || {
        work(&mut |step| {
            *reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(step);
        })
    }));
    let start = tokio::time::Instant::now() + PROGRESS_INTERVAL;
    let mut ticks = tokio::time::interval_at(start, PROGRESS_INTERVAL);
    loop {
        tokio::select! {
            done = &mut done => return done,
            _ = ticks.tick() => {
                let step = *current.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(MaintenanceStep { doing, progress }) = step {
                    let part = progress.map_or(String::new(), |(done, total)| {
                        format!(": {} %", done * 100 / total.max(1))
                    });
                    let seconds = began.elapsed().as_secs();
                    terminal::note(&format!("{doing}{part} ({seconds} s)\n"));
                }
            }
        }
    }
}
