//! Output that arrives too early to be shown: deltas of a task whose creation has not been read, and
//! notes while a person answers a question.
//!
//! Both are bounded: of too many deltas all are dropped and counted, of too many notes the oldest.

use std::collections::VecDeque;

use antiphon_core::TaskId;
use antiphon_runtime::Delta;

use crate::note::{Note, Tone};

/// Deltas that are kept; one more drops all of them.
const DELTAS_MAX: usize = 4096;

/// Notes that are kept; one more drops the oldest.
const NOTES_MAX: usize = 40;

/// Deltas and notes that are shown later.
#[derive(Debug, Default)]
pub struct DeferredOutput {
    deltas: VecDeque<Delta>,
    notes: VecDeque<Note>,
    notes_dropped: usize,
}

impl DeferredOutput {
    /// Keeps a delta. Returns how many earlier deltas were dropped, if any were.
    pub fn push_delta(&mut self, delta: Delta) -> Option<u64> {
        let count = self.deltas.len();
        if count == DELTAS_MAX {
            self.deltas.clear();
        }
        self.deltas.push_back(delta);
        (count == DELTAS_MAX).then_some(count as u64)
    }

    /// Removes and returns the deltas of one task, in order.
    pub fn take_deltas(&mut self, task_id: &TaskId) -> Vec<Delta> {
        if self.deltas.is_empty() {
            return Vec::new();
        }
        let deltas = std::mem::take(&mut self.deltas);
        let (taken, left): (Vec<_>, _) =
            deltas.into_iter().partition(|delta| delta.task_id == *task_id);
        self.deltas = left.into();
        taken
    }

    /// Keeps a note.
    pub fn push_note(&mut self, note: Note) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
            self.notes_dropped += 1;
        }
        self.notes.push_back(note);
    }

    /// Removes and returns the notes, in order. A first note says how many were dropped, if any were.
    pub fn take_notes(&mut self) -> Vec<Note> {
        let dropped = std::mem::take(&mut self.notes_dropped);
        let first = (dropped > 0)
            .then(|| Note { text: format!("  … {dropped} earlier notes"), tone: Tone::Faint });
        first.into_iter().chain(std::mem::take(&mut self.notes)).collect()
    }
}
