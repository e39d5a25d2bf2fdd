//! `antiphon journal verify`.

use antiphon_project::project::Project;
use antiphon_sqlite::{SqliteJournal, Verified};
use antiphon_view::text::size;
use clap::Args;
use serde::Serialize;

use super::progress::with_progress;
use crate::failure::Failure;
use crate::terminal;

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
    pub(super) async fn run(self, project: &Project) -> Result<(), Failure> {
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
