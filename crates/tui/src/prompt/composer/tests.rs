use super::*;
use crate::inline_screen::Cursor;

fn composer(text: &str) -> Composer {
    let mut composer = Composer::default();
    composer.set(text);
    composer
}

fn rows(composer: &Composer, width: usize) -> (Vec<String>, Cursor) {
    let (lines, cursor) = ComposerView::new(composer, width).lines(10, "");
    (lines.iter().map(ToString::to_string).collect(), cursor)
}

#[test]
fn text_wraps_and_the_cursor_follows() {
    let (rows, cursor) = rows(&composer("abcdefgh"), 8);
    assert_eq!(rows, ["› abcde", "  fgh"]);
    assert_eq!(cursor, Cursor { row: 1, column: 5 });
}

#[test]
fn wide_characters_move_the_cursor_by_two_columns() {
    assert_eq!(rows(&composer("日本"), 20).1, Cursor { row: 0, column: 6 });
}

#[test]
fn a_whole_character_is_removed_with_its_marks() {
    let mut composer = composer("e\u{301}👩‍👩‍👧");
    composer.remove(Motion::Left);
    assert_eq!(composer.text(), "e\u{301}");
    composer.remove(Motion::Left);
    assert!(composer.is_empty());
}

#[test]
fn words_are_passed_and_removed_whole() {
    let mut composer = composer("one two  three");
    composer.remove(Motion::WordLeft);
    assert_eq!(composer.text(), "one two  ");
    composer.remove(Motion::WordLeft);
    assert_eq!(composer.text(), "one ");
    composer.insert_removed();
    assert_eq!(composer.text(), "one two  ");
    composer.go(Motion::Start);
    composer.go(Motion::WordRight);
    assert_eq!(composer.cursor(), 3);
}

#[test]
fn a_long_paste_is_folded_and_sent_whole() {
    let mut composer = composer("Look: ");
    let pasted = "line\n".repeat(100);
    assert!(composer.paste(&pasted));
    assert_eq!(composer.text(), "Look: [Pasted text 1: 100 lines]");
    assert_eq!(composer.take(), format!("Look: {pasted}"));
    assert!(composer.is_empty());
}

#[test]
fn a_prompt_over_the_limit_is_refused_and_unchanged() {
    let mut composer = composer("kept");
    assert!(!composer.paste(&"x".repeat(PROMPT_BYTES_MAX)));
    assert_eq!(composer.text(), "kept");
}

#[test]
fn the_cursor_moves_between_rows_in_its_column() {
    let mut composer = composer("abcd\nef");
    let up = ComposerView::new(&composer, 40).vertical(false).unwrap();
    composer.go_to(up);
    assert_eq!(composer.cursor(), 2);
    assert_eq!(ComposerView::new(&composer, 40).vertical(false), None);
}

#[test]
fn escape_sequences_in_a_paste_do_not_reach_the_terminal() {
    let (rows, _) = rows(&composer("a\x1b[31mb\x07"), 40);
    assert_eq!(rows, ["› a·[31mb·"]);
}
