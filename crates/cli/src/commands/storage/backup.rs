//! `antiphon backup`: a copy of the journal, also while a server uses it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_project::environment::Environment;
use antiphon_project::project::Project;
use antiphon_sqlite::{BackupError, Progress, Replace, SqliteJournal};
use antiphon_view::text::size;
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::terminal;

/// How often progress is printed.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Copy the journal of this project to a file, also while a server runs (see docs/backup.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The file holds every event that was in the journal when the command started. It is checked, sealed
with a digest and readable by you alone. It gets its name when it is complete: if the command is
killed before that, an existing file stays as it was.

Examples:
  antiphon backup ~/backups/project.db
  antiphon backup --force /mnt/backups/project.db     # replaces the last one
  antiphon backup \"project-$(date +%F).db\" --json | jq .events
  antiphon restore ~/backups/project.db               # puts it back")]
pub(crate) struct Backup {
    /// Path of the backup.
    file: PathBuf,
    /// Replace an existing file.
    #[arg(long)]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A backup in JSON.
#[derive(Serialize)]
struct Row {
    file: PathBuf,
    #[serde(flatten)]
    contents: Contents,
    took_ms: u128,
}

/// Contents of a backup in JSON.
#[derive(Serialize)]
pub(super) struct Contents {
    events: u64,
    tasks: u64,
    unfinished: u64,
    bytes: u64,
    schema: u32,
}

impl From<antiphon_sqlite::Backup> for Contents {
    fn from(backup: antiphon_sqlite::Backup) -> Self {
        let antiphon_sqlite::Backup { events, tasks, unfinished, bytes, schema } = backup;
        Self { events, tasks, unfinished, bytes, schema }
    }
}

impl Backup {
    pub(crate) async fn run(self, environment: &Environment) -> Result<(), Failure> {
        let Self { file, force, json } = self;
        let (journal, began) =
            (Project::find_existing(environment)?.journal_path(), Instant::now());
        let replace = if force { Replace::Always } else { Replace::Never };
        let target = file.clone();
        let made = blocking(move || {
            SqliteJournal::back_up(
                &journal,
                &target,
                replace,
                &mut ProgressPrinter::new().callback(),
            )
        });
        let made = made
            .await?
            .map_err(|error| with_advice(error, "name another file, or replace it with --force"))?;
        let took = began.elapsed();
        if json {
            let row = Row { file, contents: made.into(), took_ms: took.as_millis() };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        terminal::print(&format!(
            "{}, written to {} in {:.1} s\n",
            summary(&made),
            file.display(),
            took.as_secs_f64()
        ));
        Ok(())
    }
}

/// Contents of a backup as text.
pub(super) fn summary(backup: &antiphon_sqlite::Backup) -> String {
    format!(
        "{} of {} ({} unfinished), {}",
        terminal::count(backup.events, "event"),
        terminal::count(backup.tasks, "task"),
        backup.unfinished,
        size(backup.bytes)
    )
}

/// Runs `work` on a blocking thread.
pub(in crate::commands) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::failed(error.to_string()))
}

/// Adds what to do about an existing file.
pub(super) fn with_advice(error: BackupError, advice: &str) -> Failure {
    if let BackupError::Exists { .. } = error {
        return Failure::usage(format!("{error}: {advice}"));
    }
    error.into()
}

/// Prints progress, once a second.
pub(super) struct ProgressPrinter {
    next: Instant,
}

impl ProgressPrinter {
    pub(super) fn new() -> Self {
        Self { next: Instant::now() + PROGRESS_INTERVAL }
    }

    /// The callback for each step.
    pub(super) fn callback(mut self) -> impl FnMut(Progress) {
        move |progress| {
            let now = Instant::now();
            if now < self.next {
                return;
            }
            self.next = now + PROGRESS_INTERVAL;
            terminal::note(&match progress {
                Progress::Copying { done, total } => {
                    format!("copying: {} %\n", done * 100 / total.max(1))
                }
                Progress::Checking => "checking\n".to_owned(),
            });
        }
    }
}
