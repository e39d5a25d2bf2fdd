//! What is looked up beside the loop, so that keys are answered meanwhile.

use tokio::task::JoinError;

use super::{Picked, Program};
use crate::choice::{Choice, ChoiceList};

/// What was found.
pub(super) enum Found {
    /// Entries to choose from, and what could not be read.
    List { title: &'static str, entries: Vec<Choice<Picked>>, failures: Vec<String> },
    /// A text to be shown.
    Note(String),
    /// Why nothing was found.
    Error(String),
}

impl Program<'_, '_> {
    /// Looks something up. What is still looked up is given up.
    pub(super) fn look_up(&mut self, lookup: impl Future<Output = Found> + Send + 'static) {
        self.lookups.abort_all();
        self.lookups.spawn(lookup);
    }

    pub(super) fn found(&mut self, found: Result<Found, JoinError>) {
        match found {
            Ok(Found::List { title, entries, failures }) => {
                for failure in &failures {
                    self.note(&format!("  {failure}"));
                }
                if self.list.is_some() || self.focus.is_some() {
                    return self.note("another list is open: type the command again");
                }
                self.list = ChoiceList::new(title, entries);
                if self.list.is_none() {
                    self.note("nothing was found");
                }
            }
            Ok(Found::Note(text)) => self.note(&text),
            Ok(Found::Error(reason)) => self.error(&reason),
            // It was given up for the next one.
            Err(_) => return,
        }
        self.is_dirty = true;
    }
}
