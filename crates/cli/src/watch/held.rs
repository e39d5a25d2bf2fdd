//! What came too early to be shown: pieces of a task whose creation has not been read, and notes while
//! somebody is asked. Both are bounded: pieces beyond the limit are missed, notes are counted.

use std::collections::VecDeque;

use antiphon_core::TaskId;
use antiphon_runtime::Delta;

use super::note::{Note, Tone};

/// Pieces that are kept; all are given up when there is one more.
const DELTAS_MAX: usize = 4096;

/// Notes that are kept; the oldest makes room for one more.
const NOTES_MAX: usize = 40;

/// What came too early to be shown.
#[derive(Debug, Default)]
pub(crate) struct Held {
    deltas: VecDeque<Delta>,
    notes: VecDeque<Note>,
    notes_left_out: usize,
}

impl Held {
    /// Keeps a piece. Says how many were given up.
    pub(crate) fn keep(&mut self, delta: Delta) -> Option<u64> {
        let missed = self.deltas.len();
        if missed == DELTAS_MAX {
            self.deltas.clear();
        }
        self.deltas.push_back(delta);
        (missed == DELTAS_MAX).then_some(missed as u64)
    }

    /// The pieces of one task, in order.
    pub(crate) fn take(&mut self, task_id: &TaskId) -> Vec<Delta> {
        if self.deltas.is_empty() {
            return Vec::new();
        }
        let deltas = std::mem::take(&mut self.deltas);
        let (taken, kept): (Vec<_>, _) =
            deltas.into_iter().partition(|delta| delta.task_id == *task_id);
        self.deltas = kept.into();
        taken
    }

    /// Keeps a note.
    pub(crate) fn keep_note(&mut self, note: Note) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
            self.notes_left_out += 1;
        }
        self.notes.push_back(note);
    }

    /// The notes, in order.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        let left_out = std::mem::take(&mut self.notes_left_out);
        let first = (left_out > 0)
            .then(|| Note { text: format!("  … {left_out} more meanwhile"), tone: Tone::Faint });
        first.into_iter().chain(std::mem::take(&mut self.notes)).collect()
    }
}
