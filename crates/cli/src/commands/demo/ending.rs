//! The end: red has become green, and the journal says what held.

use std::path::Path;
use std::time::Duration;

use antiphon_core::PriceTable;
use antiphon_core::port::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::proof::{Check, Proof};
use super::scratch::Scratch;
use super::show::{DRAWN, Played};
use super::trial::Trial;
use super::view::View;
use super::{Cast, Keep};
use crate::commands::tasks::drawing::{Drawing, Telling};
use crate::failure::Failure;
use crate::screen::elapsed;
use crate::terminal::count;
use crate::watch::Tone;

/// What the end is made of.
pub(super) struct Ending<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) cast: &'a Cast,
    pub(super) keep: Keep,
    pub(super) prices: &'a PriceTable,
    pub(super) played: &'a Played,
    pub(super) proof: &'a Proof,
    pub(super) trial: &'a Result<Trial, String>,
}

impl Ending<'_> {
    pub(super) fn tell(&self, view: &mut View) -> Result<(), Failure> {
        self.tests(view)?;
        view.scene("summary", "What happened")?;
        if view.is_json() {
            return self.object(view);
        }
        self.tree(view)?;
        let sums = format!(
            "{} in all · {} · {} · journal: {} in {}",
            elapsed(view.elapsed()),
            count(self.proof.turns as u64, "turn"),
            count(self.proof.calls as u64, "call"),
            count(self.proof.events as u64, "event"),
            size(self.proof.bytes),
        );
        view.say(Tone::Plain, &sums)?;
        if let Some(down) = self.down() {
            let ms = down.as_millis();
            let cost = format!("The kill cost {ms} ms, from the new start to the next event.");
            view.say(Tone::Plain, &cost)?;
        }
        view.say(Tone::Plain, "")?;
        view.say(Tone::Plain, "Read from the journal, not remembered:")?;
        for check in &self.proof.checks {
            let (tone, sign) = if check.holds { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
            view.say(tone, &format!("{sign} {}", check.what))?;
        }
        self.next(view)
    }

    fn tests(&self, view: &mut View) -> Result<(), Failure> {
        match self.trial {
            Ok(trial) => {
                let title = if trial.passed { "Red has become green" } else { "It is still red" };
                view.scene("tests", title)?;
                view.quote(&trial.lines())
            }
            Err(reason) => {
                view.scene("tests", "The tests cannot be run here")?;
                view.say(Tone::Faint, reason)
            }
        }
    }

    /// As `antiphon tasks tree` prints it.
    fn tree(&self, view: &mut View) -> Result<(), Failure> {
        let Some(family) = &self.played.family else { return Ok(()) };
        let drawing = Drawing {
            prices: self.prices,
            now: SystemClock.now(),
            width: view.room(),
            fold: DRAWN,
            telling: Telling::Words,
            ink: view.is_drawn().then_some(view.ink),
        };
        view.drawn(&drawing.lines(family))?;
        view.say(Tone::Plain, "")
    }

    /// From the new start to the next event.
    fn down(&self) -> Option<Duration> {
        let (_, started) = self.played.killed?;
        (self.proof.resumed? - started).to_std().ok()
    }

    /// What to try next, as it can be copied.
    fn next(&self, view: &mut View) -> Result<(), Failure> {
        let keep = match self.keep {
            Keep::Removed => {
                view.say(Tone::Plain, "")?;
                return view.say(Tone::Faint, "The folder was removed, as you asked.");
            }
            Keep::Kept => self.scratch.root(),
        };
        view.say(Tone::Plain, "")?;
        view.say(Tone::Plain, "What to try next:")?;
        let mut lines = Vec::new();
        if let Some(folder) = off_path() {
            lines.push((Tone::Plain, format!("export PATH={}:$PATH", quoted(&folder))));
        }
        lines.push((Tone::Plain, format!("cd {}", quoted(&keep))));
        let commands = [
            ("antiphon tasks tree --ids", "the tree, with ids"),
            ("antiphon tasks show last", "what the lead read and said"),
            ("antiphon run --model scripted/tools 'Look around.'", "a task of your own"),
            ("antiphon serve", "the server, for you"),
            ("antiphon doctor", "models, sandbox, keys"),
            ("antiphon demo --model anthropic/claude-sonnet-4-5", "this, on a real model"),
        ];
        let widest = commands.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
        let longest = commands.iter().map(|(_, what)| what.len()).max().unwrap_or_default();
        let is_wide = widest + longest + "  # ".len() <= view.room();
        lines.extend(commands.map(|(command, what)| {
            let line = format!("{command:widest$}  # {what}");
            (Tone::Plain, if is_wide { line } else { command.to_owned() })
        }));
        view.quote(&lines)
    }

    fn object(&self, view: &mut View) -> Result<(), Failure> {
        let check = |check: &Check| json!({ "holds": check.holds, "what": check.what });
        let checks: Vec<Value> = self.proof.checks.iter().map(check).collect();
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let summary = json!({
            "type": "summary",
            "folder": self.scratch.folder(),
            "project": self.scratch.root(),
            "kept": self.keep == Keep::Kept,
            "model": self.cast.model(),
            "elapsed_ms": view.at_ms(),
            "turns": self.proof.turns,
            "calls": self.proof.calls,
            "events": self.proof.events,
            "journal_bytes": self.proof.bytes,
            "killed": self.played.killed.is_some(),
            "down_ms": self.down().map(ms),
            "steered": self.played.steered,
            "asked": self.played.asked,
            "tests_pass": self.trial.as_ref().ok().map(|trial| trial.passed),
            "checks": checks,
        });
        view.object(&summary)
    }
}

/// The folder of this program, if the shell would not find it.
fn off_path() -> Option<std::path::PathBuf> {
    let own = std::env::current_exe().ok()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_own = |folder: std::path::PathBuf| {
        folder.join("antiphon").canonicalize().is_ok_and(|found| found == own)
    };
    if std::env::split_paths(&path).any(is_own) {
        return None;
    }
    own.parent().map(Path::to_owned)
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

fn size(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}
