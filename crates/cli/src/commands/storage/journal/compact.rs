//! `antiphon journal compact`.

use antiphon_project::project::Project;
use antiphon_sqlite::{Compacted, SqliteJournal};
use antiphon_view::text::size;
use clap::Args;
use serde::Serialize;

use super::progress::with_progress;
use crate::failure::Failure;
use crate::terminal;

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

#[derive(Serialize)]
struct CompactedRow {
    bytes_before: u64,
    bytes_after: u64,
}

impl Compact {
    pub(super) async fn run(self, project: &Project) -> Result<(), Failure> {
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
