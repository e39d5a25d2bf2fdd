//! `antiphon restore`: replaces the journal by a backup.

use std::path::PathBuf;
use std::time::Instant;

use antiphon_project::environment::Environment;
use antiphon_project::journal_restore::{
    JournalRestore, RestoreError, RestoredJournal, UnfinishedTasks,
};
use antiphon_project::project::Project;
use antiphon_sqlite::Replace;
use clap::Args;
use serde::Serialize;

use super::backup::{Contents, ProgressPrinter, summary, with_advice};
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
    #[serde(flatten)]
    contents: Contents,
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
        let restore = JournalRestore {
            file: file.clone(),
            replace: if force { Replace::Always } else { Replace::Never },
            unfinished: if continued { UnfinishedTasks::Continue } else { UnfinishedTasks::Pause },
        };
        let progress = ProgressPrinter::new().callback();
        let restored = project.restore_journal(environment, restore, progress).await;
        let restored = restored.map_err(|error| match error {
            RestoreError::Backup(error) => {
                with_advice(error, "replace it with --force, which keeps the old one")
            }
            RestoreError::Project(error) => error.into(),
        })?;
        let RestoredJournal { backup, before, paused, unreadable } = restored;
        let took = began.elapsed();
        if json {
            let (paused, took_ms) = (paused.unwrap_or(0), took.as_millis());
            let row = Row { file, contents: backup.into(), paused, before, took_ms };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        let mut text = format!("restored {} in {:.1} s\n", summary(&backup), took.as_secs_f64());
        if let Some(before) = &before {
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
