//! The line at the bottom of a terminal: what the task does now, how long it has taken and what it has spent.

use antiphon_core::{TokenUsage, Usage, UsageRecorded};

use super::Transcript;
use crate::text::elapsed;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

impl Transcript {
    /// Whether [`tick`](Self::tick) draws a status line.
    pub fn has_status_line(&self) -> bool {
        self.options.status_line
    }

    /// Sets what the status line says while the task waits for its children.
    pub fn set_waiting(&mut self, waiting: Option<String>) {
        self.waiting = waiting;
    }

    /// Adds the usage of a model call to the status line.
    pub fn add_usage(&mut self, recorded: &UsageRecorded) {
        *self.spent.entry(recorded.summed_under()).or_default() += recorded.usage;
    }

    /// Draws the status line in at most `width` characters, unless the model is writing there.
    pub fn tick(&mut self, width: usize) {
        if !self.options.status_line || self.in_text {
            return;
        }
        let line: String = self.activity_line().chars().take(width).collect();
        let line = self.options.colors.dim(&line);
        self.write_note(&format!("\r\x1b[2K{line}"));
        self.status_drawn = true;
    }

    /// `⠙ bash │ compiling 3.2 s · 1204 tokens · $0.0123`, with the next sign of progress.
    pub fn activity_line(&mut self) -> String {
        self.ticks += 1;
        let spinner = SPINNER[self.ticks % SPINNER.len()];
        let activity = self.waiting.as_ref().unwrap_or(&self.activity);
        format!("{spinner} {activity} {}", self.spent_text())
    }

    /// `3.2 s · 1204 tokens · $0.0123`.
    pub fn spent_text(&self) -> String {
        let mut total = Usage::default();
        for usage in self.spent.values() {
            total += *usage;
        }
        let tokens = TokenUsage::from(total).total_tokens;
        let mut text = elapsed(self.began.elapsed());
        if tokens > 0 {
            text.extend([" · ", &tokens.to_string(), " tokens"]);
        }
        if let Ok(cost) = antiphon_runtime::cost(&self.spent, &self.options.prices)
            && cost.nano_usd > 0
        {
            text.extend([" · ", &cost.to_string()]);
        }
        text
    }

    /// Erases the status line.
    pub fn clear_status(&mut self) {
        if std::mem::take(&mut self.status_drawn) {
            self.write_note("\r\x1b[2K");
        }
    }
}
