//! `read`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use antiphon_toolbox::paging::{LINE_CHARS_MAX, ROWS_BYTES_MAX};
use serde_json::json;

use crate::world::{World, text_of};

#[test]
fn a_text_is_shown_as_numbered_lines() {
    let world = World::new();
    assert_eq!(world.read("a.txt").tool_output(), "     1\talpha\n     2\tbeta\n");
}

#[test]
fn a_long_text_is_read_to_its_end_by_following_what_it_says() {
    let world = World::new();
    let mut text = String::new();
    (1..=4_500).for_each(|i| writeln!(text, "line {i}").unwrap());
    world.put("long.txt", &text);
    let (mut offset, mut read) = (1, String::new());
    loop {
        let tool_output =
            world.call("read", &json!({ "path": "long.txt", "offset": offset })).tool_output();
        for line in tool_output.lines().filter(|line| !line.starts_with('[')) {
            writeln!(read, "{}", line.split_once('\t').unwrap().1).unwrap();
        }
        match tool_output.split_once("continue at offset ") {
            Some((_, next)) => offset = next.trim_end_matches("]\n").parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(read, text);
    assert_eq!(offset, 4_001);
}

#[test]
fn no_more_is_shown_than_fits() {
    let world = World::new();
    world.put("wide.txt", format!("{}\n", "x".repeat(1_000)).repeat(1_000));
    let tool_output = world.read("wide.txt").tool_output();
    assert!(tool_output.len() < ROWS_BYTES_MAX + 200, "{}", tool_output.len());
    assert!(
        tool_output.ends_with("of 1000: continue at offset 261]\n"),
        "{}",
        &tool_output[tool_output.len() - 80..]
    );
}

#[test]
fn a_huge_line_is_cut_and_its_length_told() {
    let world = World::new();
    world.put("min.js", "é".repeat(3_000_000));
    let tool_output = world.read("min.js").tool_output();
    assert!(tool_output.len() < 3 * LINE_CHARS_MAX, "{}", tool_output.len());
    assert!(tool_output.contains("… [cut: this line has 3000000 characters]\n"));
    assert!(tool_output.contains("[1 of these lines are cut after 2000 characters: use grep"));
}

#[test]
fn a_picture_is_shown_as_one() {
    let world = World::new();
    let webp = b"RIFF\x10\0\0\0WEBPVP8 ....";
    world.put("w.webp", webp);
    let result = world.call_as("task", "read", &json!({ "path": "w.webp" })).unwrap();
    assert!(!result.is_error);
    assert_eq!(text_of(&result), "`w.webp`: image/webp, 20 bytes\n<image/webp of 20 bytes>");
}

/// Sparse, so that it takes no room; without line breaks, so that none ends the search for one.
#[test]
fn a_gigabyte_of_zeros_is_described_at_once() {
    let world = World::new();
    let file = std::fs::File::create(world.path("huge")).unwrap();
    file.set_len(1 << 30).unwrap();
    let begun = Instant::now();
    assert!(world.read("huge").tool_output().contains("is not text but data: 1073741824 bytes"));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn the_beginning_of_a_gigabyte_of_text_is_shown_without_reading_the_rest() {
    let world = World::new();
    huge_text(&world, "huge.txt", 1 << 30);
    let begun = Instant::now();
    let tool_output = world.read("huge.txt").tool_output();
    assert!(
        tool_output
            .contains("[lines 1-2000 of a text of 1073741824 bytes: continue at offset 2001]")
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

/// Text, then a hole: a large file that takes little room.
pub(crate) fn huge_text(world: &World, name: &str, bytes: u64) {
    world.put(name, format!("{}\n", "x".repeat(99)).repeat(100_000));
    let file = std::fs::File::options().write(true).open(world.path(name)).unwrap();
    file.set_len(bytes).unwrap();
}
