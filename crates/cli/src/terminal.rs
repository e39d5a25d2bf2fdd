//! Standard output and standard error of this process: what is written there, their width and colors.
//!
//! Text of a model, a file, a name or a provider must not control the terminal: [`print()`] and [`note`] filter
//! everything ([`display`](antiphon_view::display)). Only [`write()`] does not, for lines with colors whose parts
//! were escaped before.

pub(crate) mod choice;
pub(crate) mod color_choice;
mod foreground;
pub(crate) mod hidden_input;
pub(crate) mod keyboard;
pub(crate) mod standard_streams;
pub(crate) mod terminal_mode;
pub(crate) mod terminal_notice;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use antiphon_view::Colors;
use antiphon_view::display::{Destination, escaped};
pub(crate) use antiphon_view::text::{age, count, table};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde::Serialize;

pub(crate) use crate::color_choice::{stderr_colors, stdout_colors};
use crate::failure::Failure;
pub(crate) use foreground::{
    check_readable, is_in_background, is_in_foreground, may_draw, wait_for_line,
};

/// Rows of a terminal whose size is unknown.
const ROWS_DEFAULT: usize = 24;

/// Prints to standard output. A reader that closes the pipe early, such as `head`, is no failure.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(stdout_destination().text(text).as_bytes());
}

/// Prints to standard error. A closed standard error is no failure.
pub(crate) fn note(text: &str) {
    let mut out = std::io::stderr().lock();
    let text = Destination::of(out.is_terminal()).text(text);
    let _ = out.write_all(text.as_bytes());
}

/// Prints help, or what is wrong with the arguments, which it repeats.
pub(crate) fn print_usage(error: &clap::Error) -> ExitCode {
    let (is_error, rendered) = (error.use_stderr(), error.render());
    let colors = if is_error { stderr_colors() } else { stdout_colors() };
    let text = match colors {
        Colors::On => rendered.ansi().to_string(),
        Colors::Off => rendered.to_string(),
    };
    // Colors that the user forces go into a pipe, too.
    let destination = |is_terminal| match colors {
        Colors::On => Destination::Terminal,
        Colors::Off => Destination::of(is_terminal),
    };
    // Output that cannot be written is no reason for another exit code.
    let _ = if is_error {
        let mut out = std::io::stderr().lock();
        let text = destination(out.is_terminal()).colored_text(&text);
        out.write_all(text.as_bytes())
    } else {
        let mut out = std::io::stdout().lock();
        let text = destination(out.is_terminal()).colored_text(&text);
        out.write_all(text.as_bytes())
    };
    if is_second_word_of_prompt(error) {
        note("\n  tip: a prompt of several words needs quotes: antiphon run \"…\"\n");
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// Whether `antiphon run` got a second word where one prompt is expected.
fn is_second_word_of_prompt(error: &clap::Error) -> bool {
    let is_word = |value: &ContextValue| matches!(value, ContextValue::String(text) if !text.starts_with('-'));
    error.kind() == ErrorKind::UnknownArgument
        && error.get(ContextKind::InvalidArg).is_some_and(is_word)
        && std::env::args_os().nth(1).is_some_and(|command| command == "run")
}

/// Where standard output goes.
pub(crate) fn stdout_destination() -> Destination {
    Destination::of(std::io::stdout().is_terminal())
}

/// Asks the user yes or no on the terminal. `None` without a terminal, in the background, and when it is closed.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || !is_in_foreground() {
        return None;
    }
    loop {
        note(&format!("antiphon: {} [y/n] ", escaped(question)));
        // The shell may have moved this process to the background meanwhile.
        if !wait_for_line(|| {}) {
            return None;
        }
        let mut answer = String::new();
        if std::io::stdin().read_line(&mut answer).ok()? == 0 {
            return None;
        }
        match answer.trim() {
            "y" | "yes" => return Some(true),
            "n" | "no" => return Some(false),
            _ => {}
        }
    }
}

/// Writes text to standard output as it is, and flushes it. The caller has escaped its parts.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Failure::unwritable(&error))
}

/// Indented JSON with a line break at the end, as [`print()`] writes it unchanged.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    let text = text.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(stdout_destination().json(&text).into_owned() + "\n")
}

/// Columns of the terminal: 80 when unknown, at least 20.
pub(crate) fn width() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(20)
}

/// Rows of the terminal: 24 when unknown, at least 4.
pub(crate) fn rows() -> usize {
    crossterm::terminal::size().map_or(ROWS_DEFAULT, |(_, rows)| usize::from(rows)).max(4)
}

/// Whether the terminal understands no escape sequences.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}
