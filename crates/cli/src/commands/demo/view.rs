//! What a person or a program sees of the demo: scenes, lines, and on a terminal the tree beneath them,
//! drawn again in place.
//!
//! Elsewhere than on a terminal, or on one that cannot be drawn on, the same lines come in order and
//! nothing is drawn. As JSON, each is an object on a line of its own.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use serde_json::{Value, json};

use crate::commands::tasks::live::canvas::Canvas;
use crate::failure::Failure;
use crate::ink::Ink;
use crate::screen::terminal_width;
use crate::watch::Tone;

/// How wide lines are where there is no terminal.
const WIDTH: usize = 100;

/// No line is wider, however wide the terminal is: nobody reads it.
const WIDTH_MAX: usize = 110;

/// How far lines stand in from the left.
const INDENT: usize = 2;

/// Width of the name of an agent.
const AGENT_WIDTH: usize = 8;

/// How it is shown.
enum Form {
    Drawn(Canvas),
    Lines,
    Json,
}

/// What is seen of the demo.
pub(super) struct View {
    form: Form,
    pub(super) ink: Ink,
    began: Instant,
    scenes: usize,
    scene: &'static str,
    panel: Vec<String>,
}

impl View {
    pub(super) fn new(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let form = match (json, std::io::stdout().is_terminal() && !dumb) {
            (true, _) => Form::Json,
            (false, true) => Form::Drawn(Canvas::new()),
            (false, false) => Form::Lines,
        };
        Self {
            form,
            ink: Ink::for_stdout(),
            began: Instant::now(),
            scenes: 0,
            scene: "opening",
            panel: Vec::new(),
        }
    }

    /// Whether it is drawn for somebody who watches.
    pub(super) fn is_drawn(&self) -> bool {
        matches!(self.form, Form::Drawn(_))
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.form, Form::Json)
    }

    /// How long it has been going on.
    pub(super) fn elapsed(&self) -> std::time::Duration {
        self.began.elapsed()
    }

    pub(super) fn width(&self) -> usize {
        if self.is_drawn() { terminal_width().min(WIDTH_MAX) } else { WIDTH }
    }

    /// The next scene.
    pub(super) fn scene(&mut self, name: &'static str, title: &str) -> Result<(), Failure> {
        self.scenes += 1;
        self.scene = name;
        if self.is_json() {
            return self.object(&json!({
                "type": "scene", "scene": name, "title": title, "at_ms": self.at_ms(),
            }));
        }
        let head = format!("{}  {title}", self.scenes);
        let head = self.ink.bold(&self.ink.cyan(&head));
        self.print(&[String::new(), head])
    }

    /// What it is called, at the very top.
    pub(super) fn heading(&mut self, text: &str) -> Result<(), Failure> {
        if self.is_json() {
            return self.told(None, text);
        }
        let text = self.ink.bold(text);
        self.print(&[text])
    }

    /// A sentence.
    pub(super) fn say(&mut self, tone: Tone, text: &str) -> Result<(), Failure> {
        if self.is_json() {
            return if text.is_empty() { Ok(()) } else { self.told(None, text) };
        }
        let room = self.width().saturating_sub(INDENT);
        let lines = wrap(text, room).into_iter().map(|line| self.painted(tone, INDENT, &line));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// Lines as they are, each cut where there is no more room.
    pub(super) fn quote(&mut self, lines: &[(Tone, String)]) -> Result<(), Failure> {
        if self.is_json() {
            return lines.iter().try_for_each(|(_, line)| self.told(None, line));
        }
        let room = self.room();
        let cut = |line: &str| line.chars().take(room).collect::<String>();
        let lines = lines.iter().map(|(tone, line)| self.painted(*tone, 2 * INDENT, &cut(line)));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// Lines that were made to be seen, as wide as [`Self::room`].
    pub(super) fn drawn(&mut self, lines: &[String]) -> Result<(), Failure> {
        let lines = lines.iter().map(|line| format!("{:1$}{line}", "", 2 * INDENT));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// How wide a line may be that stands further in.
    pub(super) fn room(&self) -> usize {
        self.width().saturating_sub(2 * INDENT)
    }

    /// What an agent does or says.
    pub(super) fn agent(&mut self, agent: &str, tone: Tone, text: &str) -> Result<(), Failure> {
        if self.is_json() {
            return self.told(Some(agent), text);
        }
        let stands = INDENT + AGENT_WIDTH + 2;
        let mut lines = wrap(text, self.width().saturating_sub(stands)).into_iter();
        let name: String = agent.chars().take(AGENT_WIDTH).collect();
        let first = self.painted(tone, 0, &lines.next().unwrap_or_default());
        let name = self.ink.bold(&format!("{name:AGENT_WIDTH$}"));
        let mut told = vec![format!("{:INDENT$}{name}  {first}", "")];
        told.extend(lines.map(|line| self.painted(tone, stands, &line)));
        self.print(&told)
    }

    /// Puts these lines beneath everything, in place of those that are there.
    pub(super) fn panel(&mut self, lines: Vec<String>) -> Result<(), Failure> {
        self.panel = lines;
        self.draw()
    }

    /// One JSON object, if that is what is wanted.
    pub(super) fn object(&mut self, value: &Value) -> Result<(), Failure> {
        if self.is_json() { write(&format!("{value}\n")) } else { Ok(()) }
    }

    /// Where the demo stands on its clock.
    pub(super) fn at_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn told(&mut self, agent: Option<&str>, text: &str) -> Result<(), Failure> {
        let mut told = json!({
            "type": "told", "scene": self.scene, "text": text, "at_ms": self.at_ms(),
        });
        if let Some(agent) = agent {
            told["agent"] = agent.into();
        }
        self.object(&told)
    }

    fn painted(&self, tone: Tone, indent: usize, line: &str) -> String {
        let line = match tone {
            Tone::Plain => line.to_owned(),
            Tone::Good => self.ink.green(line),
            Tone::Bad => self.ink.red(line),
            Tone::Faint => self.ink.dim(line),
        };
        format!("{:indent$}{line}", "")
    }

    /// Prints lines above the panel, where they stay.
    fn print(&mut self, lines: &[String]) -> Result<(), Failure> {
        if let Form::Drawn(canvas) = &mut self.form {
            canvas.wipe()?;
        }
        let text: String = lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect();
        write(&text)?;
        self.draw()
    }

    fn draw(&mut self) -> Result<(), Failure> {
        match &mut self.form {
            Form::Drawn(canvas) => canvas.draw(self.panel.clone()),
            Form::Lines | Form::Json => Ok(()),
        }
    }
}

/// A text in lines of at most `width` characters, broken between words where that is possible.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    if text.is_empty() {
        return vec![String::new()];
    }
    let width = width.max(1);
    let mut lines = Vec::new();
    for part in text.lines() {
        let (mut line, mut length) = (String::new(), 0);
        for word in part.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if length > 0 && length + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
                length = 0;
            }
            while word.len() > width {
                lines.push(word.drain(..width).collect());
            }
            if length > 0 {
                line.push(' ');
                length += 1;
            }
            length += word.len();
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::unwritable(&error))
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn a_text_is_broken_between_words_and_within_one_that_is_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(wrap("one\n\ntwo", 80), ["one", "", "two"]);
        assert_eq!(wrap("", 80), [""]);
    }
}
