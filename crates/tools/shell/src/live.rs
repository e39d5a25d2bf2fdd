//! Output while it is being written, for whoever watches: not too often, and not too much of it.

use std::time::{Duration, Instant};

use antiphon_core::port::Progress;

/// How often something is said at most.
const SAY_EVERY: Duration = Duration::from_millis(100);

/// Most that is said at a time, in bytes: of a flood, its end.
const SAID_BYTES_MAX: usize = 8 * 1024;

/// Says what a command writes.
pub(crate) struct Live {
    /// `None` when nobody listens any more.
    progress: Option<Progress>,
    waiting: String,
    /// What was said of a line that had no end.
    pending: String,
    next: Option<Instant>,
}

impl Live {
    pub(crate) fn new(progress: Progress) -> Self {
        Self {
            progress: Some(progress),
            waiting: String::new(),
            pending: String::new(),
            next: None,
        }
    }

    pub(crate) fn hush(&mut self) {
        self.progress = None;
        self.waiting = String::new();
    }

    /// Takes lines to be said.
    pub(crate) fn add(&mut self, lines: &str) {
        if self.progress.is_none() {
            return;
        }
        self.waiting.push_str(lines);
        if self.waiting.len() > 2 * SAID_BYTES_MAX {
            let cut = self.waiting.len() - SAID_BYTES_MAX;
            let cut = (cut..self.waiting.len()).find(|at| self.waiting.is_char_boundary(*at));
            self.waiting.replace_range(..cut.unwrap_or_default(), "…\n");
        }
    }

    /// Says what waits and the line that has no end yet, or when it may be said.
    pub(crate) fn say(&mut self, pending: Option<String>) -> Option<Instant> {
        self.progress.as_ref()?;
        let pending = pending.unwrap_or_default();
        if self.waiting.is_empty() && pending == self.pending {
            return None;
        }
        let now = Instant::now();
        if let Some(next) = self.next.filter(|next| *next > now) {
            return Some(next);
        }
        self.speak(pending);
        self.next = Some(now + SAY_EVERY);
        None
    }

    /// Says the rest, however soon it is.
    pub(crate) fn finish(&mut self) {
        if !self.waiting.is_empty() {
            self.speak(String::new());
        }
    }

    fn speak(&mut self, pending: String) {
        let Some(progress) = &self.progress else { return };
        let all = std::mem::take(&mut self.waiting) + &pending;
        progress.say(all.strip_prefix(&self.pending).unwrap_or(&all));
        self.pending = pending;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn heard() -> (Arc<Mutex<Vec<String>>>, Live) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        let live = Live::new(Progress::to(move |text| ears.lock().unwrap().push(text.to_owned())));
        (heard, live)
    }

    #[test]
    fn the_first_piece_is_said_at_once_and_the_next_ones_together() {
        let (heard, mut live) = heard();
        live.add("one\n");
        assert_eq!(live.say(Some("two".to_owned())), None);
        live.add("two, three\n");
        let later = live.say(None).unwrap();
        live.add("four\n");
        assert_eq!(live.say(None), Some(later));
        live.next = None;
        assert_eq!(live.say(None), None);
        assert_eq!(*heard.lock().unwrap(), ["one\ntwo", ", three\nfour\n"]);
    }

    #[test]
    fn of_a_flood_only_the_end_is_said() {
        let (heard, mut live) = heard();
        live.add(&"→\n".repeat(100_000));
        live.say(None);
        let heard = heard.lock().unwrap().concat();
        assert!(heard.starts_with("…\n") && heard.len() <= SAID_BYTES_MAX + 8, "{}", heard.len());
    }

    #[test]
    fn nobody_is_told_who_does_not_listen() {
        let (heard, mut live) = heard();
        live.hush();
        live.add("one\n");
        assert_eq!(live.say(Some("two".to_owned())), None);
        assert!(heard.lock().unwrap().is_empty());
    }
}
