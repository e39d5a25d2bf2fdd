//! Names that are odd.

use serde_json::json;

use super::Expected::{Is, Shows};
use super::{Case, all, case, check, needle};
use crate::world::Tool::{Glob, Grep};

const NAMES_THAT_ARE_ODD: &[Case] = &[
    case(
        "a line break",
        |tree| {
            tree.file("a\nb.txt", "needle\n");
        },
        Grep,
        needle,
        Shows(&["a\\nb.txt\n1: needle\n", "[some names have characters"], &["a\nb"]),
    ),
    case(
        "escape sequences",
        |tree| {
            tree.file("\x1b[31m\x07.txt", "");
        },
        Glob,
        all,
        Shows(&["\\u{1b}[31m\\u{7}.txt\n\n[1 file]\n[some names"], &["\x1b"]),
    ),
    case(
        "direction marks",
        |tree| {
            tree.file("\u{202e}txt.exe", "");
        },
        Glob,
        all,
        Shows(&["\\u{202e}txt.exe\n"], &["\u{202e}"]),
    ),
    case(
        "not UTF-8",
        |tree| {
            tree.file_named(b"a\xff\xfe.txt", "needle\n");
        },
        Grep,
        needle,
        Shows(&["a��.txt\n1: needle\n", "[some names are not UTF-8"], &[]),
    ),
    case(
        "not UTF-8, by pattern",
        |tree| {
            tree.file_named(b"a\xff.txt", "");
        },
        Glob,
        || json!({ "pattern": "*.txt" }),
        Shows(&["a�.txt\n"], &[]),
    ),
    case(
        "like options",
        |tree| {
            tree.file("--help", "needle\n").file("-", "needle\n");
        },
        Grep,
        needle,
        Is("-\n1: needle\n\n--help\n1: needle\n\n[2 matches in 2 files]"),
    ),
    case(
        "white space and quotes",
        |tree| {
            tree.file(" a 'b' \"c\" ", "needle\n");
        },
        Grep,
        needle,
        Is(" a 'b' \"c\" \n1: needle\n\n[1 match in 1 file]"),
    ),
    case(
        "like a pattern",
        |tree| {
            tree.file("[a]{b}*.txt", "").file("ab.txt", "");
        },
        Glob,
        || json!({ "pattern": "\\[a\\]\\{b\\}\\*.txt" }),
        Is("[a]{b}*.txt\n\n[1 file]"),
    ),
    case(
        "255 bytes",
        |tree| {
            tree.file(&"n".repeat(255), "needle\n");
        },
        Grep,
        needle,
        Shows(&["[1 match in 1 file]"], &[]),
    ),
    case(
        "two hundred folders down",
        |tree| {
            tree.file(&format!("{}a.txt", "deeper/".repeat(200)), "needle\n");
        },
        Grep,
        needle,
        Shows(&["/deeper/a.txt\n1: needle"], &[]),
    ),
    case(
        "two thousand files in a folder",
        |tree| {
            for number in 0..2000 {
                tree.file(
                    &format!("f/{number:04}"),
                    if number % 1000 == 0 { "needle" } else { "hay" },
                );
            }
        },
        Grep,
        || json!({ "pattern": "needle", "mode": "files" }),
        Is("f/0000\nf/1000\n\n[2 files with a match]"),
    ),
];

#[test]
fn names_that_are_odd() {
    check(NAMES_THAT_ARE_ODD);
}
