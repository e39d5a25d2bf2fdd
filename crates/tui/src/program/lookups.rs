//! What is looked up beside the loop, so that keys are answered meanwhile.

use ratatui_core::text::Line;
use tokio::task::JoinError;

use super::overlay::Overlay;
use super::sessions::Preview;
use super::{Picked, Program};
use crate::choice::{Choice, ChoiceList};

/// What was found.
pub(super) enum Found {
    /// Entries to choose from, and what could not be read.
    List { title: &'static str, entries: Vec<Choice<Picked>>, failures: Vec<String> },
    /// What was said last in a conversation.
    Preview(Preview),
    /// An image of the clipboard.
    Image(Vec<u8>),
    /// A transcript, formatted.
    Transcript(Box<Overlay>),
    /// Lines to be shown.
    Lines(Vec<Line<'static>>),
    /// A text to be shown.
    Note(String),
    /// Why nothing was found.
    Error(String),
}

impl Program<'_, '_> {
    /// Looks something up. What is still looked up is given up.
    pub(super) fn look_up(&mut self, lookup: impl Future<Output = Found> + Send + 'static) {
        self.lookups.abort_all();
        self.opening = None;
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
                self.look_at_selected();
            }
            Ok(Found::Preview(preview)) => self.show_preview(preview),
            Ok(Found::Image(data)) => self.insert_image(&data),
            Ok(Found::Transcript(overlay)) => self.open_overlay(*overlay),
            Ok(Found::Lines(lines)) => self.add_lines(lines),
            Ok(Found::Note(text)) => self.note(&text),
            Ok(Found::Error(reason)) => {
                self.opening = None;
                self.error(&reason);
            }
            // It was given up for the next one.
            Err(_) => return,
        }
        self.is_dirty = true;
    }
}
