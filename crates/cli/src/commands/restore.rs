//! `antiphon restore`: a backup in place of the journal.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use antiphon_core::WaitingFor;
use antiphon_core::port::{Clock, SystemClock, TaskQuery, TaskSelector};
use antiphon_sqlite::Replace;
use clap::Args;
use serde::Serialize;

use super::backup::{Teller, blocking, explained, told};
use crate::config::Config;
use crate::failure::Failure;
use crate::models::Models;
use crate::project::Project;
use crate::terminal;

/// How long a journal that was paused may take to be closed.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Put a backup in place of the journal of this project (see docs/backup.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Nobody may work on the project meanwhile: end `antiphon serve` first. The backup is checked before
anything is touched, and takes the place of the journal in one step. Killed at any moment, the
journal is the old one or the restored one.

Tasks that had not ended when the backup was made go on from there with the next `antiphon serve`.
What they did since they may do again: with --paused they wait for `antiphon tasks resume TASK`.

Examples:
  antiphon restore ~/backups/project.db               # into a folder without a journal
  antiphon restore --force ~/backups/project.db       # the old journal is kept beside it
  antiphon restore --force --paused ~/backups/project.db
  antiphon restore project.db --json | jq .unfinished")]
pub(crate) struct Restore {
    /// What `antiphon backup` wrote, or a journal that was kept.
    file: PathBuf,
    /// Also when a journal is there. It is kept as `journal.db.before-TIME`.
    #[arg(long)]
    force: bool,
    /// Pause every task that has not ended.
    #[arg(long)]
    paused: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A restored journal in JSON.
#[derive(Serialize)]
struct Row {
    file: PathBuf,
    events: u64,
    tasks: u64,
    unfinished: u64,
    bytes: u64,
    schema: u32,
    /// How many were paused for it.
    paused: usize,
    /// Where the journal is that was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<PathBuf>,
    took_ms: u128,
}

impl Restore {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self { file, force, paused, json } = self;
        let (project, began) = (Project::here()?, Instant::now());
        // A folder of ours is a folder of ours from here on.
        project.break_ground()?;
        let replace = if force { Replace::Always } else { Replace::Never };
        let (from, journal) = (file.clone(), project.journal_path());
        let ready = blocking(move || {
            antiphon_sqlite::Restore::prepare(
                &from,
                &journal,
                replace,
                &mut Teller::new().listening(),
            )
        });
        let ready = ready
            .await?
            .map_err(|error| explained(error, "--force keeps it beside the restored one"))?;
        let backup = ready.backup().clone();
        let paused = if paused { Some(pause_all(ready.staged()).await?) } else { None };
        let restored = blocking(move || ready.put_in_place(SystemClock.now())).await??;
        let took = began.elapsed();
        if json {
            let antiphon_sqlite::Backup { events, tasks, unfinished, bytes, schema } = backup;
            let (before, took_ms) = (restored.before, took.as_millis());
            let paused = paused.unwrap_or(0);
            let row =
                Row { file, events, tasks, unfinished, bytes, schema, paused, before, took_ms };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        let mut text = format!("restored {} in {:.1} s\n", told(&backup), took.as_secs_f64());
        if let Some(before) = &restored.before {
            let name = before.display().to_string();
            text.extend(["the journal that was here is kept as ", &name, "\n"]);
        }
        text.push_str(&after(backup.unfinished, paused));
        terminal::print(&text);
        Ok(())
    }
}

/// What becomes of what had not ended. `paused` are those that were paused for it, if that was asked
/// for.
fn after(unfinished: u64, paused: Option<usize>) -> String {
    match (unfinished, paused) {
        (0, _) => String::new(),
        (_, None) => format!(
            "{} had not ended: `antiphon serve` goes on with them as they were, and may repeat what they \
             did since. See them with `antiphon tasks list --unfinished`\n",
            terminal::count(unfinished, "task")
        ),
        (_, Some(0)) => format!(
            "{} had not ended, and all were paused already: go on with `antiphon tasks resume TASK`\n",
            terminal::count(unfinished, "task")
        ),
        (_, Some(paused)) => format!(
            "{} now paused: go on with `antiphon tasks resume TASK`\n",
            terminal::count(paused as u64, "task")
        ),
    }
}

/// Pauses everything that has not ended in a journal that is not in its place yet. Says how many
/// that were.
async fn pause_all(journal: &Path) -> Result<usize, Failure> {
    let keeper = Project::keeper_at(journal, Models::new(Config::load()?))?;
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let unfinished = keeper.tasks(query).await?;
    let mut paused = 0;
    for task in unfinished.iter().filter(|task| task.waiting_for != Some(WaitingFor::Resume)) {
        keeper.pause(&task.task_id).await?;
        paused += 1;
    }
    // It has to be closed before it is moved.
    keeper.shutdown(CLOSING_MAX).await;
    Ok(paused)
}
