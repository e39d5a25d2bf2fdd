//! Notes about a text, shown in addition to its lines.

use std::fmt::Write;
use std::path::Path;

use antiphon_core::ToolResult;
use encoding_rs::{Encoding, UTF_8};

use antiphon_toolbox::paging::{CollectedRows, LINE_CHARS_MAX, Scanned, is_at_the_end, range_note};

use super::Certainty;
use crate::workspace::DisplayPath;

/// A text that was read.
pub(super) struct Text<'a> {
    pub(super) name: &'a Path,
    pub(super) size: u64,
    pub(super) first: u64,
    pub(super) rows: CollectedRows,
    pub(super) scanned: Scanned,
    pub(super) encoding: &'static Encoding,
    pub(super) certainty: Certainty,
}

/// The lines, with notes about them.
pub(super) fn text(text: Text<'_>) -> ToolResult {
    let Text { rows, scanned, first, .. } = &text;
    if scanned.to_the_end && rows.total == 0 {
        return ToolResult::text(format!("{} is empty.", DisplayPath(text.name)));
    }
    if scanned.to_the_end && rows.total < *first {
        return ToolResult::failed(format!(
            "{} has {} lines, there is nothing at offset {first}: read it with a smaller offset",
            DisplayPath(text.name),
            rows.total
        ));
    }
    let mut notes: Vec<String> =
        range_note(*first, rows, *scanned, text.size).into_iter().collect();
    if rows.cut > 0 {
        notes.push(format!(
            "{} of these lines are cut after {LINE_CHARS_MAX} characters: use grep to see more",
            rows.cut
        ));
    }
    let encoding = text.encoding.name();
    match text.certainty {
        Certainty::Sure | Certainty::Guessed if text.encoding == UTF_8 => {}
        Certainty::Sure => notes.push(format!("decoded from {encoding}")),
        Certainty::Guessed => {
            notes.push(format!("not UTF-8: decoded as {encoding} by the look of it"));
        }
    }
    if scanned.broken {
        notes.push(format!("some bytes are no {encoding} and are shown as \u{fffd}"));
    }
    if rows.crlf {
        notes.push("lines end with CRLF".to_owned());
    }
    if scanned.to_the_end && is_at_the_end(*first, rows) && !rows.ends_with_line_break {
        notes.push("no line break at the end of the file".to_owned());
    }
    let mut shown = text.rows.text;
    for note in notes {
        // Writing to a string does not fail.
        let _ = writeln!(shown, "[{note}]");
    }
    ToolResult::text(shown)
}
