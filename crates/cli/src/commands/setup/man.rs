//! `antiphon man`: the manual pages.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;
use crate::terminal;

/// Write the manual pages, one for each command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  antiphon man ~/.local/share/man/man1
  antiphon man /tmp/man && man -l /tmp/man/antiphon-run.1")]
pub(crate) struct Man {
    /// Folder for the pages; it is created.
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Result<(), Failure> {
        let refuse = |error: std::io::Error| {
            Failure::usage(format!("cannot write to {}: {error}", self.folder.display()))
        };
        std::fs::create_dir_all(&self.folder).map_err(refuse)?;
        clap_mangen::generate_to(command.disable_help_subcommand(true), &self.folder)
            .map_err(refuse)?;
        terminal::note(&format!("antiphon: written to {}\n", self.folder.display()));
        Ok(())
    }
}
