//! Contents that are no plain text, too long, or forbidden.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::Expected::{Is, Shows};
use super::{Case, ONLY_A, case, check, needle, nothing, utf16};
use crate::world::Tool::{Glob, Grep};
use crate::world::Tree;

const CONTENTS_THAT_ARE_NO_PLAIN_TEXT: &[Case] = &[
    case(
        "a NUL at the start",
        |tree| {
            tree.file("a.bin", "\0needle\n");
        },
        Grep,
        needle,
        Is("No matches in `.` (1 file searched, 1 of them binary)."),
    ),
    case(
        "a NUL after the match",
        |tree| {
            tree.file("a.bin", "needle\n\0");
        },
        Grep,
        needle,
        Is("No matches in `.` (1 file searched, 1 of them binary)."),
    ),
    case(
        "UTF-16, little end first",
        |tree| {
            tree.file("a.txt", utf16("ünder\nneedle é\n", u16::to_le_bytes));
        },
        Grep,
        needle,
        Is("a.txt\n2: needle é\n\n[1 match in 1 file]"),
    ),
    case(
        "UTF-16, big end first",
        |tree| {
            tree.file("a.txt", utf16("needle é\n", u16::to_be_bytes));
        },
        Grep,
        needle,
        Is("a.txt\n1: needle é\n\n[1 match in 1 file]"),
    ),
    case(
        "UTF-8 with a mark",
        |tree| {
            tree.file("a.txt", "\u{feff}needle\n");
        },
        Grep,
        || json!({ "pattern": "^needle$" }),
        Is(ONLY_A),
    ),
    case(
        "CRLF",
        |tree| {
            tree.file("a.txt", "the needle\r\nneedles\r\n");
        },
        Grep,
        || json!({ "pattern": "needle$" }),
        Is("a.txt\n1: the needle\n\n[1 match in 1 file]"),
    ),
    case(
        "CR alone ends no line",
        |tree| {
            tree.file("a.txt", "one\rneedle\rthree");
        },
        Grep,
        needle,
        Is("a.txt\n1: one\\rneedle\\rthree\n\n[1 match in 1 file]"),
    ),
    case(
        "no end of the last line",
        |tree| {
            tree.file("a.txt", "x\nneedle");
        },
        Grep,
        needle,
        Is("a.txt\n2: needle\n\n[1 match in 1 file]"),
    ),
    case(
        "bytes that are no text",
        |tree| {
            tree.file("a.txt", b"\xfd\xff\xfeneedle\xc3\n");
        },
        Grep,
        needle,
        Is("a.txt\n1: ���needle�\n\n[1 match in 1 file]"),
    ),
    case(
        "a dot matches no broken byte",
        |tree| {
            tree.file("a.txt", b"a\xffb\n");
        },
        Grep,
        || json!({ "pattern": "a.b" }),
        Is("No matches in `.` (1 file searched)."),
    ),
    case(
        "escape sequences",
        |tree| {
            tree.file("a.txt", "\x1b[2J\x1b]0;x\x07needle\x08\n");
        },
        Grep,
        needle,
        Is("a.txt\n1: \\u{1b}[2J\\u{1b}]0;x\\u{7}needle\\u{8}\n\n[1 match in 1 file]"),
    ),
    case(
        "text that hides",
        |tree| {
            tree.file("a.txt", "needle\u{e0041}\u{202e}\u{2028}\n");
        },
        Grep,
        needle,
        Is("a.txt\n1: needle\\u{e0041}\\u{202e}\\u{2028}\n\n[1 match in 1 file]"),
    ),
    case(
        "an empty file",
        |tree| {
            tree.file("a.txt", "");
        },
        Grep,
        || json!({ "pattern": "^" }),
        Is("No matches in `.` (1 file searched)."),
    ),
    case("no files", nothing, Grep, needle, Shows(&["No files to search in `.`"], &[])),
    case(
        "five million characters on one line",
        |tree| {
            tree.file(
                "a.txt",
                format!("{}needle{}\n", "x".repeat(2_500_000), "y".repeat(2_500_000)),
            );
        },
        Grep,
        needle,
        Shows(&["1: …xxx", "xneedley", "y…\n"], &["error"]),
    ),
    case(
        "a hundred thousand short lines",
        |tree| {
            tree.file("a.txt", "needle\n".repeat(100_000));
        },
        Grep,
        needle,
        Shows(&["\n100: needle\n\n[the first 100 matches in 1 file; there are more"], &["101:"]),
    ),
];

#[test]
fn contents_that_are_no_plain_text() {
    check(CONTENTS_THAT_ARE_NO_PLAIN_TEXT);
}

#[test]
fn a_line_longer_than_memory_allows_is_told_and_the_rest_is_searched() {
    let tree = Tree::new();
    tree.file("a.txt", "needle\n").file("z.txt", "needle\n");
    tree.file("b.json", vec![b'x'; 100 * 1024 * 1024]);
    let expected = "a.txt\n1: needle\n\nz.txt\n1: needle\n\n[2 matches in 2 files]\n\
                    [not searched: b.json (a line longer than 64 MiB)]";
    assert_eq!(tree.shown(Grep, &needle()), expected);
}

#[test]
fn a_file_that_may_not_be_read_is_told() {
    let tree = Tree::new();
    tree.file("a.txt", "needle\n").file("b.txt", "needle\n").file("c/d.txt", "needle\n");
    let forbid = |path: &str, mode| {
        fs::set_permissions(tree.root().join(path), Permissions::from_mode(mode)).unwrap();
    };
    forbid("b.txt", 0o000);
    forbid("c", 0o000);
    let shown = tree.shown(Grep, &needle());
    let listed = tree.shown(Glob, &json!({ "pattern": "**" }));
    let is_forbidden = fs::read(tree.root().join("b.txt")).is_err();
    forbid("c", 0o700);
    // The superuser may read everything.
    if is_forbidden {
        let not_searched = "[not searched: b.txt (permission denied), c (permission denied)]";
        assert_eq!(shown, format!("{ONLY_A}\n{not_searched}"));
        assert!(listed.ends_with("[not searched: c (permission denied)]"), "{listed}");
    } else {
        assert!(shown.ends_with("[3 matches in 3 files]"), "{shown}");
        assert!(listed.ends_with("[3 files, the newest first]"), "{listed}");
    }
}
