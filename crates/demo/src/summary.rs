//! The end of the demo: the tests, the tree, and the checked guarantees.

use std::path::Path;
use std::time::Duration;

use antiphon_core::PriceTable;
use antiphon_core::port::{Clock as _, SystemClock};
use antiphon_view::text::{count, elapsed, size};
use antiphon_view::{Colors, LastColumn, Tone, TreeDrawing};
use serde_json::{Value, json};

use crate::journal_check::{Check, JournalCheck};
use crate::output::Output;
use crate::test_run::TestRun;
use crate::tour::{COLLAPSE, TourResult};
use crate::{Demo, DemoError, FolderAtEnd};

/// Everything the summary shows.
pub(crate) struct Summary<'a> {
    pub(crate) demo: Demo<'a>,
    pub(crate) prices: &'a PriceTable,
    pub(crate) tour: &'a TourResult,
    pub(crate) check: &'a JournalCheck,
    pub(crate) tests: &'a Result<TestRun, String>,
}

impl Summary<'_> {
    pub(crate) fn show(&self, output: &mut Output) -> Result<(), DemoError> {
        self.tests(output)?;
        output.chapter("summary", "What happened")?;
        if output.is_json() {
            return self.object(output);
        }
        self.tree(output)?;
        let sums = format!(
            "{} in all · {} · {} · journal: {} in {}",
            elapsed(output.elapsed()),
            count(self.check.turns as u64, "turn"),
            count(self.check.calls as u64, "call"),
            count(self.check.events as u64, "event"),
            size(self.check.bytes),
        );
        output.say(Tone::Plain, &sums)?;
        if let Some(recovery) = self.recovery() {
            let ms = recovery.as_millis();
            let text = format!("Recovery took {ms} ms, from the restart to the next event.");
            output.say(Tone::Plain, &text)?;
        }
        output.say(Tone::Plain, "")?;
        output.say(Tone::Plain, "Checked in the journal:")?;
        for check in &self.check.checks {
            let (tone, sign) = if check.holds { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
            output.say(tone, &format!("{sign} {}", check.text))?;
        }
        self.next_steps(output)
    }

    fn tests(&self, output: &mut Output) -> Result<(), DemoError> {
        match self.tests {
            Ok(tests) => {
                let title =
                    if tests.passed { "The tests pass now" } else { "The tests still fail" };
                output.chapter("tests", title)?;
                output.quote(&tests.lines())
            }
            Err(reason) => {
                output.chapter("tests", "The tests cannot run here")?;
                output.say(Tone::Faint, reason)
            }
        }
    }

    /// As `antiphon tasks tree` prints it.
    fn tree(&self, output: &mut Output) -> Result<(), DemoError> {
        let Some(tree) = &self.tour.tree else { return Ok(()) };
        let drawing = TreeDrawing {
            prices: self.prices,
            now: SystemClock.now(),
            width: output.inner_width(),
            collapse: COLLAPSE,
            last_column: LastColumn::Output,
            colors: if output.is_drawn() { output.colors() } else { Colors::Off },
        };
        output.drawn(&drawing.lines(tree))?;
        output.say(Tone::Plain, "")
    }

    /// Time from the restart of the server to the next event.
    fn recovery(&self) -> Option<Duration> {
        let restarted = self.tour.killed?.restarted;
        (self.check.resumed? - restarted).to_std().ok()
    }

    /// Commands the user can copy.
    fn next_steps(&self, output: &mut Output) -> Result<(), DemoError> {
        let root = match self.demo.options.folder_at_end {
            FolderAtEnd::Remove => {
                output.say(Tone::Plain, "")?;
                return output.say(Tone::Faint, "The folder is removed.");
            }
            FolderAtEnd::Keep => self.demo.folder.root(),
        };
        output.say(Tone::Plain, "")?;
        output.say(Tone::Plain, "What to try next:")?;
        let mut lines = Vec::new();
        if let Some(folder) = &self.demo.options.missing_in_path {
            lines.push((Tone::Plain, format!("export PATH={}:$PATH", quoted(folder))));
        }
        lines.push((Tone::Plain, format!("cd {}", quoted(&root))));
        let state = quoted(&self.demo.folder.state());
        lines.push((Tone::Plain, format!("export ANTIPHON_STATE={state}")));
        let commands = [
            ("antiphon tasks tree --ids", "the tree, with ids"),
            ("antiphon tasks show last", "the conversation of the lead"),
            ("antiphon run --model scripted/tools 'Look around.'", "a task of your own"),
            ("antiphon serve", "the server for this project"),
            ("antiphon doctor", "models, sandbox, keys"),
            ("antiphon demo --model anthropic/claude-sonnet-4-5", "the same with a real model"),
        ];
        let widest = commands.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        let longest = commands.iter().map(|(_, comment)| comment.len()).max().unwrap_or_default();
        let is_wide = widest + longest + "  # ".len() <= output.inner_width();
        lines.extend(commands.map(|(command, comment)| {
            let line = format!("{command:widest$}  # {comment}");
            (Tone::Plain, if is_wide { line } else { command.to_owned() })
        }));
        output.quote(&lines)
    }

    fn object(&self, output: &mut Output) -> Result<(), DemoError> {
        let check = |check: &Check| json!({ "holds": check.holds, "what": check.text });
        let checks: Vec<Value> = self.check.checks.iter().map(check).collect();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let summary = json!({
            "type": "summary",
            "folder": self.demo.folder.path(),
            "project": self.demo.folder.root(),
            "kept": self.demo.options.folder_at_end == FolderAtEnd::Keep,
            "model": self.demo.model.model(),
            "elapsed_ms": output.at_ms(),
            "turns": self.check.turns,
            "calls": self.check.calls,
            "events": self.check.events,
            "journal_bytes": self.check.bytes,
            "killed": self.tour.killed.is_some(),
            "down_ms": self.recovery().map(ms),
            "steered": self.tour.steered,
            "asked": self.tour.approvals,
            "tests_pass": self.tests.as_ref().ok().map(|tests| tests.passed),
            "checks": checks,
        });
        output.object(&summary)
    }
}

/// A path, quoted for a shell if needed.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
