//! Numbered lines of a text, by range: reads a text of any length and holds only the lines to show.

mod range_note;
mod rows;
mod scan;

pub use range_note::{is_at_the_end, range_note};
pub use rows::{CollectedRows, LINE_CHARS_MAX, LongLines, ROWS_BYTES_MAX, ROWS_MAX, Rows};
pub use scan::{COUNTED_BYTES_MAX, ScanError, Scanned, scan};
