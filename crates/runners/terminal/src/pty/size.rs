//! The size of a terminal. Values out of bounds are clamped.

use std::num::NonZeroU16;

use rustix::termios::Winsize;

/// Most rows.
pub const ROWS_MAX: u16 = 300;

/// Most columns.
pub const COLUMNS_MAX: u16 = 600;

/// The size of a terminal: within 1 to [`ROWS_MAX`] and 2 to [`COLUMNS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    rows: u16,
    columns: u16,
}

impl Size {
    /// Clamps both values.
    pub fn new(rows: u16, columns: u16) -> Self {
        // A wide character needs two columns.
        Self { rows: rows.clamp(1, ROWS_MAX), columns: columns.clamp(2, COLUMNS_MAX) }
    }

    /// Rows, at least 1.
    pub fn rows(self) -> u16 {
        self.rows
    }

    /// Columns, at least 2.
    pub fn columns(self) -> u16 {
        self.columns
    }

    /// The smaller of both, in each dimension.
    pub(crate) fn within(self, other: Self) -> Self {
        Self { rows: self.rows.min(other.rows), columns: self.columns.min(other.columns) }
    }

    pub(crate) fn non_zero(self) -> (NonZeroU16, NonZeroU16) {
        let non_zero = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
        (non_zero(self.rows), non_zero(self.columns))
    }
}

/// The size without watchers.
impl Default for Size {
    fn default() -> Self {
        Self { rows: 40, columns: 120 }
    }
}

impl From<Winsize> for Size {
    fn from(size: Winsize) -> Self {
        Self::new(size.ws_row, size.ws_col)
    }
}

impl From<Size> for Winsize {
    fn from(size: Size) -> Self {
        Self { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
    }
}
