//! A table, with columns as wide as their cells or as the terminal allows. A cell that is too wide is broken within its
//! column.

use pulldown_cmark::Alignment;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::wrap::wrap;

/// Stands between two columns.
const BETWEEN: &str = " │ ";

pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Line<'static>>>,
    row: Vec<Line<'static>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, spans: Vec<Span<'static>>) {
        self.row.push(Line::from(spans));
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The lines: the head, a rule, and the rows.
    pub(super) fn lines(self, width: usize) -> Vec<Line<'static>> {
        let widths = self.widths(width);
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, &widths, index == 0));
            if index == 0 {
                let rules: Vec<String> =
                    widths.iter().map(|columns| "─".repeat(*columns)).collect();
                let dim = Style::new().add_modifier(Modifier::DIM);
                lines.push(Line::styled(rules.join("─┼─"), dim));
            }
        }
        lines
    }

    /// Columns of each column. Wide ones give way until the table fits.
    fn widths(&self, width: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![1; count];
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                widths[column] = widths[column].max(cell.width());
            }
        }
        let between = BETWEEN.chars().count() * count.saturating_sub(1);
        let available = width.saturating_sub(between).max(count);
        while widths.iter().sum::<usize>() > available {
            let Some(widest) = widths.iter_mut().max() else { break };
            *widest -= 1;
        }
        widths
    }

    fn row_lines(
        &self,
        row: &[Line<'static>],
        widths: &[usize],
        is_head: bool,
    ) -> Vec<Line<'static>> {
        let empty = Line::default();
        let cells: Vec<Vec<Line<'static>>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| wrap(row.get(column).unwrap_or(&empty), *width, 0))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |index: usize| {
            let mut spans = Vec::new();
            for (column, width) in widths.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(BETWEEN, Style::new().add_modifier(Modifier::DIM)));
                }
                let cell = cells[column].get(index).unwrap_or(&empty);
                let free = width.saturating_sub(cell.width());
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    Some(Alignment::None | Alignment::Left) | None => 0,
                };
                spans.push(Span::raw(" ".repeat(before)));
                spans.extend(cell.spans.iter().cloned());
                spans.push(Span::raw(" ".repeat(free - before)));
            }
            let style =
                if is_head { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
            Line::from(spans).style(style)
        };
        (0..height).map(line).collect()
    }
}
