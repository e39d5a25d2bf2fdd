use super::*;

fn texts(text: &str, width: usize) -> Vec<String> {
    lines(text, width).iter().map(|line| line.to_string().trim_end().to_owned()).collect()
}

#[test]
fn blocks_are_divided_by_one_blank_line() {
    let text = "# Title\nA paragraph\nof two lines.\n\n\nAnother.";
    assert_eq!(texts(text, 40), ["Title", "", "A paragraph of two lines.", "", "Another."]);
}

#[test]
fn lists_have_markers_and_hanging_lines() {
    let text = "- one two three\n- four\n  - five\n\n1. first\n2. second";
    assert_eq!(
        texts(text, 11),
        ["• one two", "  three", "• four", "  • five", "", "1. first", "2. second"]
    );
}

#[test]
fn code_keeps_its_lines() {
    let text = "Run:\n```sh\ncargo test\n\n  indented\n```\nDone.";
    assert_eq!(
        texts(text, 40),
        ["Run:", "", "  sh", "  cargo test", "", "    indented", "", "Done."]
    );
}

#[test]
fn a_table_fits_into_the_width() {
    let text = "| name | what it is |\n|---|--:|\n| a | a long text that must break |\n";
    let lines = texts(text, 24);
    assert_eq!(lines[0], "name │        what it is");
    assert!(lines.iter().all(|line| line.chars().count() <= 24), "{lines:?}");
    assert!(lines.len() > 3, "{lines:?}");
}

#[test]
fn a_link_shows_where_it_leads() {
    assert_eq!(texts("[here](https://example.com)", 60), ["here (https://example.com)"]);
    assert_eq!(texts("<https://example.com>", 60), ["https://example.com"]);
}

#[test]
fn a_quote_stands_behind_a_bar() {
    assert_eq!(texts("> one\n> two\n\nafter", 40), ["│ one two", "", "after"]);
}

#[test]
fn the_last_block_begins_behind_the_complete_ones() {
    assert_eq!(last_block("one\n\ntwo\n\nthr"), 10);
    assert_eq!(last_block("one"), 0);
    assert_eq!(last_block("```\na\n\nb"), 0);
    assert_eq!(last_block(""), 0);
}

#[test]
fn deep_nesting_does_not_take_all_columns() {
    let items: Vec<String> =
        (0..40).map(|depth| format!("{}- item {depth}", "  ".repeat(depth))).collect();
    let text = items.join(
        "
",
    );
    assert!(lines(&text, 20).iter().all(|line| line.width() <= 20));
}
