//! Draws a screen in the window of a watcher.
//!
//! Only this output reaches a watcher's terminal: text, colors, the cursor, and the modes that
//! decide what keys and the mouse send. Everything else that a program wrote (titles, clipboards,
//! terminal queries) ends at the screen.

use std::fmt::Write;

use crate::pty::size::Size;

/// Draws `now` in a window that shows `before`, or the whole screen if that is unknown.
pub(crate) fn draw_screen(
    now: &vt100::Screen,
    before: Option<&vt100::Screen>,
    window: Size,
) -> String {
    let before = before.filter(|before| before.size() == now.size());
    if size(now) == window {
        return match before {
            Some(before) => now.state_diff(before),
            None => now.state_formatted(),
        };
    }
    // A wrapped line would wrap at the edge of the window, which has another width.
    line_by_line(now, before, window)
}

/// The size of a screen.
pub(crate) fn size(screen: &vt100::Screen) -> Size {
    let (rows, columns) = screen.size();
    Size::new(rows.get(), columns.get())
}

fn line_by_line(now: &vt100::Screen, before: Option<&vt100::Screen>, window: Size) -> String {
    let shown = size(now).within(window);
    let (rows, columns) = (usize::from(shown.rows()), shown.columns());
    let old: Option<Vec<String>> =
        before.map(|before| before.rows_formatted(0, columns).take(rows).collect());
    let mut drawn = String::from(if old.is_some() { "\x1b[?25l" } else { "\x1b[m\x1b[H\x1b[J" });
    for (index, row) in now.rows_formatted(0, columns).take(rows).enumerate() {
        if old.as_ref().and_then(|old| old.get(index)) != Some(&row) {
            // Writing to a text never fails.
            let _ = write!(drawn, "\x1b[{};1H\x1b[m\x1b[K{row}", index + 1);
        }
    }
    let (row, column) = now.cursor_position();
    let is_seen = row < shown.rows() && column < shown.columns() && !now.hide_cursor();
    let cursor = if is_seen { "\x1b[?25h" } else { "\x1b[?25l" };
    let _ = write!(drawn, "\x1b[m\x1b[{};{}H{cursor}", row + 1, column + 1);
    drawn.push_str(&match before {
        Some(before) => now.input_mode_diff(before),
        None => now.input_mode_formatted(),
    });
    drawn
}
