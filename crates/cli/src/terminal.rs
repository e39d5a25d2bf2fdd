//! Output that people and programs read.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use antiphon_core::visible;
use serde::Serialize;

use crate::failure::Failure;

/// Prints to standard output. A reader that has seen enough, such as `head`, is no failure.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // What a model, a file or a provider said must not drive the terminal.
    let text = if out.is_terminal() { Cow::Owned(visible(text)) } else { Cow::Borrowed(text) };
    let _ = out.write_all(text.as_bytes());
}

/// Prints to standard error, where nobody may be listening.
pub(crate) fn note(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Indented JSON with a line break at the end.
pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::failed(error.to_string()))
}

/// Rows with their columns one below the other.
pub(crate) fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(row.as_ref().len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// `1 turn`, `2 turns`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// `12s`, `5m`, `3h`, `2d`.
pub(crate) fn age(time: chrono::TimeDelta) -> String {
    let seconds = time.num_seconds().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
