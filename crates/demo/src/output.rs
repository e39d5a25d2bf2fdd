//! The output of the demo: numbered chapters, lines, and on a terminal the tree of tasks below them, drawn
//! again in place.
//!
//! Without a terminal that can move its cursor, the same lines come in order and nothing is drawn. As
//! JSON, each is an object on a line of its own.

use std::io::{Stdout, Write};
use std::time::Instant;

use antiphon_view::text::wrap;
use antiphon_view::{Canvas, Colors, Tone};
use serde_json::{Value, json};

use crate::{DemoError, OutputFormat, Terminal};

/// Width of lines without a terminal.
const WIDTH: usize = 100;

/// Width of lines on a wide terminal: longer ones are hard to read.
const WIDTH_MAX: usize = 110;

/// Spaces before a line.
const INDENT: usize = 2;

/// Width of the column of agents.
const AGENT_WIDTH: usize = 8;

enum Display {
    Drawn(Canvas<Stdout>),
    Lines,
    Json,
}

/// The output of the demo, on standard output.
pub(crate) struct Output {
    display: Display,
    terminal: Terminal,
    began: Instant,
    chapters: usize,
    /// The `chapter` of a line in JSON.
    chapter: &'static str,
    /// The lines drawn below everything else.
    panel: Vec<String>,
}

impl Output {
    pub(crate) fn new(format: OutputFormat, terminal: Terminal) -> Self {
        let display = match (format, terminal.can_draw) {
            (OutputFormat::Json, _) => Display::Json,
            (OutputFormat::Text, true) => Display::Drawn(Canvas::new(std::io::stdout())),
            (OutputFormat::Text, false) => Display::Lines,
        };
        Self {
            display,
            terminal,
            began: Instant::now(),
            chapters: 0,
            chapter: "opening",
            panel: Vec::new(),
        }
    }

    /// Whether a person watches it on a terminal.
    pub(crate) fn is_drawn(&self) -> bool {
        matches!(self.display, Display::Drawn(_))
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.display, Display::Json)
    }

    /// Time since the demo began.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.began.elapsed()
    }

    pub(crate) fn width(&self) -> usize {
        if self.is_drawn() { (self.terminal.size)().0.min(WIDTH_MAX) } else { WIDTH }
    }

    pub(crate) fn colors(&self) -> Colors {
        self.terminal.colors
    }

    /// Begins the next chapter; `name` identifies it in JSON.
    pub(crate) fn chapter(&mut self, name: &'static str, title: &str) -> Result<(), DemoError> {
        self.chapters += 1;
        self.chapter = name;
        if self.is_json() {
            return self.object(&json!({
                "type": "chapter", "chapter": name, "title": title, "at_ms": self.at_ms(),
            }));
        }
        let head = format!("{}  {title}", self.chapters);
        let head = self.colors().bold(&self.colors().cyan(&head));
        self.print(&[String::new(), head])
    }

    /// The first line.
    pub(crate) fn heading(&mut self, text: &str) -> Result<(), DemoError> {
        if self.is_json() {
            return self.json_line(None, text);
        }
        let text = self.colors().bold(text);
        self.print(&[text])
    }

    /// A sentence or a paragraph.
    pub(crate) fn say(&mut self, tone: Tone, text: &str) -> Result<(), DemoError> {
        if self.is_json() {
            return if text.is_empty() { Ok(()) } else { self.json_line(None, text) };
        }
        let width = self.width().saturating_sub(INDENT);
        let lines = wrap(text, width).into_iter().map(|line| self.painted(tone, INDENT, &line));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// Further indented lines, each cut at the width.
    pub(crate) fn quote(&mut self, lines: &[(Tone, String)]) -> Result<(), DemoError> {
        if self.is_json() {
            return lines.iter().try_for_each(|(_, line)| self.json_line(None, line));
        }
        let width = self.inner_width();
        let cut = |line: &str| line.chars().take(width).collect::<String>();
        let lines = lines.iter().map(|(tone, line)| self.painted(*tone, 2 * INDENT, &cut(line)));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// Further indented lines that fit in [`Self::inner_width`] already.
    pub(crate) fn drawn(&mut self, lines: &[String]) -> Result<(), DemoError> {
        let lines = lines.iter().map(|line| format!("{:1$}{line}", "", 2 * INDENT));
        let lines: Vec<String> = lines.collect();
        self.print(&lines)
    }

    /// Width of a further indented line.
    pub(crate) fn inner_width(&self) -> usize {
        self.width().saturating_sub(2 * INDENT)
    }

    /// A line about an agent. Without a name it continues the line above.
    pub(crate) fn agent(&mut self, agent: &str, tone: Tone, text: &str) -> Result<(), DemoError> {
        if self.is_json() {
            return self.json_line(Some(agent), text);
        }
        let indent = INDENT + AGENT_WIDTH + 2;
        let mut lines = wrap(text, self.width().saturating_sub(indent)).into_iter();
        let name: String = agent.chars().take(AGENT_WIDTH).collect();
        let first = self.painted(tone, 0, &lines.next().unwrap_or_default());
        let name = self.colors().bold(&format!("{name:AGENT_WIDTH$}"));
        let mut all = vec![format!("{:INDENT$}{name}  {first}", "")];
        all.extend(lines.map(|line| self.painted(tone, indent, &line)));
        self.print(&all)
    }

    /// Replaces the lines below everything else.
    pub(crate) fn panel(&mut self, lines: Vec<String>) -> Result<(), DemoError> {
        self.panel = lines;
        self.draw()
    }

    /// Writes a JSON object, if the output is JSON.
    pub(crate) fn object(&mut self, value: &Value) -> Result<(), DemoError> {
        if self.is_json() { write(&format!("{value}\n")) } else { Ok(()) }
    }

    /// Milliseconds since the demo began.
    pub(crate) fn at_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn json_line(&mut self, agent: Option<&str>, text: &str) -> Result<(), DemoError> {
        let mut line = json!({
            "type": "narration", "chapter": self.chapter, "text": text, "at_ms": self.at_ms(),
        });
        if let Some(agent) = agent {
            line["agent"] = agent.into();
        }
        self.object(&line)
    }

    fn painted(&self, tone: Tone, indent: usize, line: &str) -> String {
        format!("{:indent$}{}", "", self.colors().toned(tone, line))
    }

    /// Prints lines above the panel.
    fn print(&mut self, lines: &[String]) -> Result<(), DemoError> {
        if let Display::Drawn(canvas) = &mut self.display {
            canvas.erase().map_err(|error| DemoError::unwritable(&error))?;
        }
        let text: String = lines.iter().flat_map(|line| [line.trim_end(), "\n"]).collect();
        write(&text)?;
        self.draw()
    }

    fn draw(&mut self) -> Result<(), DemoError> {
        match &mut self.display {
            Display::Drawn(canvas) => {
                let drawn = canvas.draw(self.panel.clone(), (self.terminal.size)().1);
                drawn.map_err(|error| DemoError::unwritable(&error))
            }
            Display::Lines | Display::Json => Ok(()),
        }
    }
}

fn write(text: &str) -> Result<(), DemoError> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| DemoError::unwritable(&error))
}
