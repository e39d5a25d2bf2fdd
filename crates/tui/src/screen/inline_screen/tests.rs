//! What a terminal shows after frames: its screen and its scrollback.

use std::num::NonZeroU16;

use vt100::Parser;

use super::*;

const HERE: Cursor = Cursor { row: 0, column: 0 };

fn nonzero(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

struct Terminal {
    parser: Parser,
    screen: InlineScreen<Vec<u8>>,
}

impl Terminal {
    fn new(rows: u16, columns: u16) -> Self {
        let size = Size { columns: usize::from(columns), rows: usize::from(rows) };
        let screen = InlineScreen::new(Vec::new(), Styles::In(Theme::Terminal), size);
        Self { parser: Parser::new(nonzero(rows), nonzero(columns), 1000), screen }
    }

    fn draw(&mut self, finished: &[&str], live: &[&str]) {
        let lines = |texts: &[&str]| -> Vec<Line<'static>> {
            texts.iter().map(|text| Line::raw((*text).to_owned())).collect()
        };
        self.screen.draw(&lines(finished), &lines(live), HERE).unwrap();
        self.parser.process(&std::mem::take(&mut self.screen.output));
    }

    /// Every line since the beginning, also those above the screen.
    fn all_lines(&mut self) -> Vec<String> {
        let (rows, _) = self.parser.screen().size();
        let mut lines = Vec::new();
        self.parser.screen_mut().set_scrollback(usize::MAX);
        let mut above = self.parser.screen().scrollback();
        while above > 0 {
            self.parser.screen_mut().set_scrollback(above);
            lines.push(self.parser.screen().rows(0, 200).next().unwrap());
            above -= 1;
        }
        self.parser.screen_mut().set_scrollback(0);
        lines.extend(self.parser.screen().rows(0, 200).take(usize::from(rows.get())));
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }
}

#[test]
fn finished_lines_go_into_the_scrollback_in_order() {
    let mut terminal = Terminal::new(6, 20);
    for number in 0..20 {
        terminal.draw(&[&format!("line {number}")], &["prompt", "status"]);
        terminal.draw(&[], &["prompt!", "status", "tree"]);
    }
    let mut expected: Vec<String> = (0..20).map(|number| format!("line {number}")).collect();
    expected.extend(["prompt!", "status", "tree"].map(str::to_owned));
    assert_eq!(terminal.all_lines(), expected);
}

#[test]
fn live_rows_shrink_and_grow_without_leaving_anything() {
    let mut terminal = Terminal::new(8, 20);
    terminal.draw(&["done"], &["a", "b", "c", "d"]);
    terminal.draw(&[], &["x"]);
    assert_eq!(terminal.all_lines(), ["done", "x"]);
    terminal.draw(&[], &["x", "y", "z"]);
    assert_eq!(terminal.all_lines(), ["done", "x", "y", "z"]);
}

#[test]
fn a_row_that_became_shorter_is_erased_behind_its_end() {
    let mut terminal = Terminal::new(5, 20);
    terminal.draw(&[], &["a long row", "second"]);
    terminal.draw(&[], &["short", "second"]);
    assert_eq!(terminal.all_lines(), ["short", "second"]);
}

#[test]
fn an_unchanged_frame_writes_no_row() {
    let mut terminal = Terminal::new(5, 20);
    terminal.draw(&[], &["prompt", "status"]);
    let lines = [Line::raw("prompt"), Line::raw("status")];
    terminal.screen.draw(&[], &lines, HERE).unwrap();
    let frame = String::from_utf8(std::mem::take(&mut terminal.screen.output)).unwrap();
    assert!(!frame.contains("prompt") && !frame.contains("status"), "{frame:?}");
}

#[test]
fn more_live_rows_than_the_terminal_has_are_cut() {
    let mut terminal = Terminal::new(4, 20);
    terminal.draw(&["kept"], &["1", "2", "3", "4", "5", "6"]);
    terminal.draw(&["kept too"], &["1", "2", "3", "4", "5", "6"]);
    assert_eq!(terminal.all_lines(), ["kept", "kept too", "1", "2", "3"]);
}

#[test]
fn a_terminal_that_lies_about_its_size_gets_a_usable_one() {
    assert_eq!(Size::of((0, 0)), Size { columns: 80, rows: 24 });
    assert_eq!(Size::of((1, 1)), Size { columns: 10, rows: 4 });
    assert_eq!(Size::of((u16::MAX, u16::MAX)), Size { columns: 500, rows: 300 });
}

#[test]
fn a_live_row_that_is_too_wide_is_cut() {
    let mut terminal = Terminal::new(6, 20);
    for _ in 0..3 {
        terminal.draw(&[], &["a row that is wider than the terminal", "status"]);
        terminal.draw(&["done"], &["a row that is wider than the terminal", "status!"]);
    }
    assert_eq!(terminal.all_lines(), ["done", "done", "done", "a row that is wider", "status!"]);
}
