//! Reports output to watchers while a command runs, at a limited rate and size.

use std::time::{Duration, Instant};

use antiphon_core::port::Progress;

/// Shortest time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// Most text of one report, in bytes. Of more text only the end is reported.
const REPORT_BYTES_MAX: usize = 8 * 1024;

/// Reports the output of a command.
pub(crate) struct ProgressWriter {
    /// `None` once progress is stopped.
    progress: Option<Progress>,
    unreported: String,
    /// The part of the incomplete last line that was reported.
    pending: String,
    next: Option<Instant>,
}

impl ProgressWriter {
    pub(crate) fn new(progress: Progress) -> Self {
        Self {
            progress: Some(progress),
            unreported: String::new(),
            pending: String::new(),
            next: None,
        }
    }

    pub(crate) fn stop_progress(&mut self) {
        self.progress = None;
        self.unreported = String::new();
    }

    /// Adds complete lines.
    pub(crate) fn add(&mut self, lines: &str) {
        if self.progress.is_none() {
            return;
        }
        self.unreported.push_str(lines);
        if self.unreported.len() > 2 * REPORT_BYTES_MAX {
            let cut = self.unreported.len() - REPORT_BYTES_MAX;
            let cut = (cut..self.unreported.len()).find(|at| self.unreported.is_char_boundary(*at));
            self.unreported.replace_range(..cut.unwrap_or_default(), "…\n");
        }
    }

    /// Reports the lines that wait and the incomplete line. Returns when to try again if it is too
    /// soon.
    pub(crate) fn report(&mut self, pending: Option<String>) -> Option<Instant> {
        self.progress.as_ref()?;
        let pending = pending.unwrap_or_default();
        if self.unreported.is_empty() && pending == self.pending {
            return None;
        }
        let now = Instant::now();
        if let Some(next) = self.next.filter(|next| *next > now) {
            return Some(next);
        }
        self.report_now(pending);
        self.next = Some(now + REPORT_INTERVAL);
        None
    }

    /// Reports the rest at once.
    pub(crate) fn finish(&mut self) {
        if !self.unreported.is_empty() {
            self.report_now(String::new());
        }
    }

    fn report_now(&mut self, pending: String) {
        let Some(progress) = &self.progress else { return };
        let all = std::mem::take(&mut self.unreported) + &pending;
        progress.say(all.strip_prefix(&self.pending).unwrap_or(&all));
        self.pending = pending;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn reports() -> (Arc<Mutex<Vec<String>>>, ProgressWriter) {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        let progress_writer = ProgressWriter::new(Progress::to(move |text| {
            sink.lock().unwrap().push(text.to_owned());
        }));
        (reports, progress_writer)
    }

    #[test]
    fn the_first_piece_is_reported_at_once_and_the_next_ones_together() {
        let (reports, mut progress_writer) = reports();
        progress_writer.add("one\n");
        assert_eq!(progress_writer.report(Some("two".to_owned())), None);
        progress_writer.add("two, three\n");
        let later = progress_writer.report(None).unwrap();
        progress_writer.add("four\n");
        assert_eq!(progress_writer.report(None), Some(later));
        progress_writer.next = None;
        assert_eq!(progress_writer.report(None), None);
        assert_eq!(*reports.lock().unwrap(), ["one\ntwo", ", three\nfour\n"]);
    }

    #[test]
    fn only_the_end_of_a_flood_is_reported() {
        let (reports, mut progress_writer) = reports();
        progress_writer.add(&"→\n".repeat(100_000));
        progress_writer.report(None);
        let reports = reports.lock().unwrap().concat();
        assert!(
            reports.starts_with("…\n") && reports.len() <= REPORT_BYTES_MAX + 8,
            "{}",
            reports.len()
        );
    }

    #[test]
    fn nothing_is_reported_after_progress_is_stopped() {
        let (reports, mut progress_writer) = reports();
        progress_writer.stop_progress();
        progress_writer.add("one\n");
        assert_eq!(progress_writer.report(Some("two".to_owned())), None);
        assert!(reports.lock().unwrap().is_empty());
    }
}
