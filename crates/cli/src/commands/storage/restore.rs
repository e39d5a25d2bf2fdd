//! `antiphon restore`: replaces the journal by a backup.

use std::path::PathBuf;
use std::time::Instant;

use antiphon_core::port::{Clock, SystemClock};
use antiphon_project::environment::Environment;
use antiphon_project::models::Models;
use antiphon_project::project::Project;
use antiphon_project::restored_journal::distrust_unfinished;
use antiphon_sqlite::Replace;
use clap::Args;
use serde::Serialize;

use super::backup::{ProgressPrinter, blocking, summary, with_advice};
use crate::failure::Failure;
use crate::terminal;

/// Replace the journal of this project by a backup (see docs/backup.md).
#[derive(Debug, Args)]
#[command(after_help = "\
Stop `antiphon serve` first. The backup is checked before anything changes, and replaces the journal in
one step: if the command is killed, the journal is either the old one or the restored one.

Tasks that had not ended are paused, without the approvals, allowed rules, runners and routes of the
file: another user may have made it. Every message in it has an unknown sender. Continue tasks with
`antiphon tasks resume TASK`. With --continue, for a backup of your own, they continue with the next
`antiphon serve` and may repeat what they did since.

Examples:
  antiphon restore ~/backups/project.db               # into a folder without a journal
  antiphon restore --force ~/backups/project.db       # keeps the old journal next to it
  antiphon restore --force --continue ~/backups/project.db
  antiphon restore .antiphon/journal.db               # a journal of an earlier version
  antiphon restore project.db --json | jq .unfinished")]
pub(crate) struct Restore {
    /// A backup, or a journal that an earlier restore kept.
    file: PathBuf,
    /// Replace an existing journal. It is kept as `journal.db.before-TIME`.
    #[arg(long)]
    force: bool,
    /// Continue unfinished tasks with all that the file says: it is a backup of your own.
    #[arg(long = "continue")]
    continued: bool,
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
    /// Tasks that were paused.
    paused: usize,
    /// Path of the replaced journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<PathBuf>,
    took_ms: u128,
}

impl Restore {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let Self { file, force, continued, json } = self;
        if let Err(error) = std::fs::metadata(&file) {
            return Err(Failure::usage(format!("{}: {error}", file.display())));
        }
        let (project, began) = (Project::find(environment)?, Instant::now());
        project.prepare_journal()?;
        let replace = if force { Replace::Always } else { Replace::Never };
        let (from, journal) = (file.clone(), project.journal_path());
        let ready = blocking(move || {
            antiphon_sqlite::Restore::prepare(
                &from,
                &journal,
                replace,
                &mut ProgressPrinter::new().callback(),
            )
        });
        let mut ready = ready.await?.map_err(|error| {
            with_advice(error, "replace it with --force, which keeps the old one")
        })?;
        let (mut paused, mut unreadable) = (None, Vec::new());
        if !continued {
            let models = Models::new(project.settings(environment)?);
            let name = file.display().to_string();
            let rebuilt = blocking(move || {
                ready.distrust(&name, SystemClock.now()).map(|unreadable| (ready, unreadable))
            });
            (ready, unreadable) = rebuilt.await??;
            paused = Some(distrust_unfinished(ready.staged(), &file, models).await?);
        }
        let backup = ready.backup().clone();
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
        let mut text = format!("restored {} in {:.1} s\n", summary(&backup), took.as_secs_f64());
        if let Some(before) = &restored.before {
            let name = before.display().to_string();
            text.extend(["the replaced journal is kept as ", &name, "\n"]);
        }
        if !unreadable.is_empty() {
            let tasks = terminal::count(unreadable.len() as u64, "task");
            text.extend([tasks.as_str(), " could not be read to the end and have failed\n"]);
        }
        text.push_str(&unfinished_note(backup.unfinished, paused));
        terminal::print(&text);
        Ok(())
    }
}

/// What happens to unfinished tasks. `paused` is how many were paused; `None` with `--continue`.
fn unfinished_note(unfinished: u64, paused: Option<usize>) -> String {
    match (unfinished, paused) {
        (0, _) => String::new(),
        (_, None) => format!(
            "{} had not ended: `antiphon serve` continues them from the backup, and may repeat what they did \
             since. See `antiphon tasks list --unfinished`\n",
            terminal::count(unfinished, "task")
        ),
        (_, Some(paused)) => format!(
            "{} now paused, without approvals, allowed rules, runners and routes of the file: continue with \
             `antiphon tasks resume TASK`\n",
            terminal::count(paused as u64, "task")
        ),
    }
}
