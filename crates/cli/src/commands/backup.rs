//! `antiphon backup`: a copy of the journal, also while somebody works on it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use antiphon_sqlite::{BackupError, Progress, Replace, SqliteJournal};
use clap::Args;
use serde::Serialize;

use crate::failure::Failure;
use crate::project::Project;
use crate::terminal;

/// How often somebody who waits is told how far it is. Nobody waits for less.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// Copy the journal of this project to a file, also while a server works on it (see docs/backup.md).
#[derive(Debug, Args)]
#[command(after_help = "\
The file holds everything that was in the journal when the command began, and nothing that was half
done. It is checked, sealed with a digest and readable by you alone. It takes its name when it is
whole: killed before that, nothing has that name, or what had it before.

Examples:
  antiphon backup ~/backups/project.db
  antiphon backup --force /mnt/backups/project.db     # in place of the last one
  antiphon backup \"project-$(date +%F).db\" --json | jq .events
  antiphon restore ~/backups/project.db               # puts it back")]
pub(crate) struct Backup {
    /// Where to.
    file: PathBuf,
    /// Replace the file, if it is there.
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
    events: u64,
    tasks: u64,
    unfinished: u64,
    bytes: u64,
    schema: u32,
    took_ms: u128,
}

impl Backup {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self { file, force, json } = self;
        let (journal, began) = (Project::known()?.journal_path(), Instant::now());
        let replace = if force { Replace::Always } else { Replace::Never };
        let target = file.clone();
        let made = blocking(move || {
            SqliteJournal::back_up(&journal, &target, replace, &mut Teller::new().listening())
        });
        let made = made
            .await?
            .map_err(|error| explained(error, "name another file, or replace it with --force"))?;
        let took = began.elapsed();
        if json {
            let antiphon_sqlite::Backup { events, tasks, unfinished, bytes, schema } = made;
            let took_ms = took.as_millis();
            let row = Row { file, events, tasks, unfinished, bytes, schema, took_ms };
            terminal::print(&terminal::json(&row)?);
            return Ok(());
        }
        terminal::print(&format!(
            "{}, written to {} in {:.1} s\n",
            told(&made),
            file.display(),
            took.as_secs_f64()
        ));
        Ok(())
    }
}

/// What is in a backup, for people.
pub(super) fn told(backup: &antiphon_sqlite::Backup) -> String {
    format!(
        "{} of {} ({} unfinished), {}",
        terminal::count(backup.events, "event"),
        terminal::count(backup.tasks, "task"),
        backup.unfinished,
        size(backup.bytes)
    )
}

/// Does what takes its time where nobody else is kept waiting.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::failed(error.to_string()))
}

/// What to do about a file that is there.
pub(super) fn explained(error: BackupError, advice: &str) -> Failure {
    if let BackupError::Exists { .. } = error {
        return Failure::usage(format!("{error}: {advice}"));
    }
    error.into()
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Journal(error) => error.into(),
            BackupError::InUse { .. } => {
                Self::unavailable(format!("{message}: try again when it is done"))
            }
            BackupError::NotAFile { .. } => Self::usage(format!("{message}: name another one")),
            BackupError::Exists { .. }
            | BackupError::Itself { .. }
            | BackupError::BelongsToJournal { .. }
            | BackupError::NoExchange { .. }
            | BackupError::Unwritable { .. } => Self::usage(message),
        }
    }
}

/// Says how far it is, when it takes longer than a moment.
pub(super) struct Teller {
    next: Instant,
}

impl Teller {
    pub(super) fn new() -> Self {
        Self { next: Instant::now() + TELL_EVERY }
    }

    /// What is called at every step.
    pub(super) fn listening(mut self) -> impl FnMut(Progress) {
        move |progress| {
            let now = Instant::now();
            if now < self.next {
                return;
            }
            self.next = now + TELL_EVERY;
            terminal::note(&match progress {
                Progress::Copying { done, total } => {
                    format!("copying: {} %\n", done * 100 / total.max(1))
                }
                Progress::Checking => "checking\n".to_owned(),
            });
        }
    }
}

/// `812 bytes`, `3.4 MB`.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let unit = UNITS.iter().find(|(unit, _)| bytes >= *unit);
    let Some((unit, name)) = unit else { return terminal::count(bytes, "byte") };
    let tenths = bytes / (unit / 10);
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}
