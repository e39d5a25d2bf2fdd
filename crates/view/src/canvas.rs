//! A few lines at the bottom of a terminal that are drawn again in place.
//!
//! While a canvas exists the cursor is hidden and the terminal cuts long lines. Dropping the canvas
//! restores both.

use std::io::{self, Write};

/// Lines on a terminal, drawn through a writer of the caller.
pub struct Canvas<W: Write> {
    out: W,
    drawn: Vec<String>,
}

impl<W: Write> Canvas<W> {
    /// A canvas without lines, below the cursor of the terminal that `out` writes to.
    pub fn new(mut out: W) -> Self {
        // The first line reports a terminal that cannot be written to.
        let _ = write(&mut out, "\x1b[?25l\x1b[?7l");
        Self { out, drawn: Vec::new() }
    }

    /// Replaces the drawn lines with these, if they differ. At most `rows - 1` lines are drawn: of more,
    /// the first ones, a count of the others, and the last one.
    pub fn draw(&mut self, mut lines: Vec<String>, rows: usize) -> io::Result<()> {
        let lines_max = rows.saturating_sub(1).max(1);
        if lines.len() > lines_max {
            let left_out = lines.len() - lines_max + 1;
            let total = lines.pop();
            lines.truncate(lines_max.saturating_sub(2));
            lines.push(format!("… {left_out} more lines: see `antiphon tasks tree`"));
            lines.extend(total);
        }
        if lines == self.drawn {
            return Ok(());
        }
        let text: String = lines.iter().flat_map(|line| [line, "\r\n"]).collect();
        let erase = self.erase_sequence();
        write(&mut self.out, &format!("{erase}{text}"))?;
        self.drawn = lines;
        Ok(())
    }

    /// Erases the drawn lines.
    pub fn erase(&mut self) -> io::Result<()> {
        let erase = self.erase_sequence();
        self.drawn.clear();
        write(&mut self.out, &erase)
    }

    /// Moves the cursor to the first drawn line and erases everything from there on.
    fn erase_sequence(&self) -> String {
        match self.drawn.len() {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[0J"),
        }
    }
}

impl<W: Write> Drop for Canvas<W> {
    fn drop(&mut self) {
        let _ = write(&mut self.out, "\x1b[?25h\x1b[?7h");
    }
}

fn write(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_do_not_fit_are_counted_and_the_last_one_stays() {
        let mut out = Vec::new();
        let mut canvas = Canvas::new(&mut out);
        let lines: Vec<String> = ["a", "b", "c", "d", "total"].map(str::to_owned).into();
        canvas.draw(lines.clone(), 4).unwrap();
        canvas.draw(lines, 4).unwrap();
        canvas.draw(vec!["total".to_owned()], 4).unwrap();
        drop(canvas);
        let expected = "\x1b[?25l\x1b[?7la\r\n… 3 more lines: see `antiphon tasks tree`\r\ntotal\r\n\
                        \r\x1b[3A\x1b[0Jtotal\r\n\x1b[?25h\x1b[?7h";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
