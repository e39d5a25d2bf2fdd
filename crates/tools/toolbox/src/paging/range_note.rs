//! A note that says which lines a result shows.

use super::{CollectedRows, Scanned};

/// Says which lines are shown and at which offset to continue. `None` when all lines are shown.
/// `first` is the number of the first line asked for, `size` the size of the text in bytes.
pub fn range_note(first: u64, rows: &CollectedRows, scanned: Scanned, size: u64) -> Option<String> {
    let last = first + rows.shown - 1;
    let next = last + 1;
    if !scanned.to_the_end {
        return Some(format!(
            "lines {first}-{last} of a text of {size} bytes: continue at offset {next}"
        ));
    }
    if !is_at_the_end(first, rows) {
        return Some(format!("lines {first}-{last} of {}: continue at offset {next}", rows.total));
    }
    (first > 1).then(|| format!("lines {first}-{last} of {}", rows.total))
}

/// Whether the last line of the text is among those shown.
pub fn is_at_the_end(first: u64, rows: &CollectedRows) -> bool {
    first + rows.shown > rows.total
}
