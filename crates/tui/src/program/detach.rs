//! Leaving a task that works: it goes on without this terminal.

use super::{AtEnd, Next, Program};

impl Program<'_, '_> {
    /// Quits, and lets the task go on until it has ended or asks something.
    pub(super) fn detach(&mut self) -> Next {
        if !self.is_working {
            self.note("no task works here: /quit quits");
            return Next::Continue;
        }
        if !self.queue.is_empty() {
            self.note(
                "a prompt is queued, which only this program sends: take it back with ↑ first",
            );
            return Next::Continue;
        }
        self.at_end = AtEnd::Detach;
        Next::Quit
    }
}
