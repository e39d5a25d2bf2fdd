//! What reading a text by range asks its file for.

use std::io::{self, Read};

use antiphon_toolbox::StopFlag;
use antiphon_toolbox::paging::{LongLines, ROWS_MAX, Rows, scan};
use encoding_rs::UTF_8;

/// A file that notes how much is asked for at once.
struct Asked<'a> {
    text: &'a [u8],
    asked: Vec<usize>,
}

impl Read for Asked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.asked.push(buffer.len());
        self.text.read(buffer)
    }
}

fn scanned(head: &str, text: &str) -> (Vec<usize>, String) {
    let mut file = Asked { text: text.as_bytes(), asked: Vec::new() };
    let mut rows = Rows::new(1, ROWS_MAX, LongLines::Cut);
    let head = head.as_bytes();
    let scanned = scan(head, &mut file, UTF_8, &mut rows, |_| {}, &StopFlag::default());
    assert!(scanned.unwrap().to_the_end);
    (file.asked, rows.finish().text)
}

#[test]
fn a_text_that_its_head_holds_needs_no_large_buffer_to_find_its_end() {
    let (asked, text) = scanned("all of it\n", "");
    assert_eq!(text, "     1\tall of it\n");
    assert!(asked.iter().sum::<usize>() <= 1024, "{asked:?}");
}

#[test]
fn a_long_text_is_read_in_large_pieces() {
    let long = "a line of a longer text\n".repeat(20_000);
    let (asked, _) = scanned("", &long);
    // One small piece, and one more for the end.
    assert!(asked.len() <= long.len() / (64 * 1024) + 3, "{asked:?}");
}
