//! Patterns that are broken, or that would take other engines forever.

use serde_json::json;

use super::Expected::{Is, Refuses, Shows};
use super::{Case, case, check, needle, nothing, of, trap};
use crate::world::Tool::{Glob, Grep};

const PATTERNS_THAT_ARE_REFUSED: &[Case] = &[
    case("empty", nothing, Grep, || of(""), Refuses(&["`pattern`", "empty", "`glob`"], &[])),
    case(
        "look-ahead",
        nothing,
        Grep,
        || of("foo(?=bar)"),
        Refuses(&["look-around", "at character 4", "no look-around"], &[]),
    ),
    case(
        "look-behind",
        nothing,
        Grep,
        || of("(?<!a)b"),
        Refuses(&["look-around", "at character 1"], &[]),
    ),
    case(
        "a backreference",
        nothing,
        Grep,
        || of(r"(a)\1"),
        Refuses(&["backreferences", "at character 4"], &[]),
    ),
    case(
        "an open group",
        nothing,
        Grep,
        || of("fn main("),
        Refuses(&["unclosed group at character 8", "`literal: true`"], &[]),
    ),
    case(
        "a group that was not opened",
        nothing,
        Grep,
        || of("a)(b"),
        Refuses(&["unopened group at character 2", "`literal: true`"], &[]),
    ),
    case(
        "nothing to repeat",
        nothing,
        Grep,
        || of("*.rs"),
        Refuses(&["at character 1", "`literal: true`"], &[]),
    ),
    case(
        "on its second line",
        nothing,
        Grep,
        || of("a\n[b"),
        Refuses(&["at character 1 of line 2"], &[]),
    ),
    case(
        "an unknown class",
        nothing,
        Grep,
        || of(r"\p{Klingon}"),
        Refuses(&["Unicode property not found", "`literal: true`"], &["\n"]),
    ),
    case(
        "too large",
        nothing,
        Grep,
        || of(r"(\w{1,1000}){1000}"),
        Refuses(&["10 MiB", "repeat less"], &[]),
    ),
    case(
        "too deep",
        nothing,
        Grep,
        || of("(".repeat(5000) + &")".repeat(5000)),
        Refuses(&["nest fewer groups"], &[]),
    ),
    case("too long", nothing, Grep, || of("a".repeat(10_001)), Refuses(&["10000 bytes"], &[])),
    case("an end of line", nothing, Grep, || of(r"a\nb"), Refuses(&["`multiline: true`"], &[])),
    case("a NUL", nothing, Grep, || of(r"\x00"), Refuses(&["NUL"], &[])),
    case(
        "a glob that climbs",
        nothing,
        Grep,
        || json!({ "pattern": "a", "glob": "../*" }),
        Refuses(&["`glob`", "`..`", "`path`"], &[]),
    ),
    case(
        "an open brace",
        nothing,
        Glob,
        || of("src/{a,b"),
        Refuses(&["`{` is not closed", "character 5"], &[]),
    ),
    case(
        "an open class",
        nothing,
        Glob,
        || of("[ab"),
        Refuses(&["`[` is not closed", "character 1"], &[]),
    ),
    case("climbing", nothing, Glob, || of("../outside/*"), Refuses(&["`..`", "`path`"], &[])),
    case("climbing within", nothing, Glob, || of("a/../../outside/*"), Refuses(&["`..`"], &[])),
    case("absolute", nothing, Glob, || of("/etc/*"), Refuses(&["begins with `/`", "`path`"], &[])),
    case("no pattern", nothing, Glob, || of(""), Refuses(&["empty", "`**`"], &[])),
    case(
        "a thousand braces",
        nothing,
        Glob,
        || of(format!("{}a{}", "{".repeat(450), "}".repeat(450))),
        Refuses(&["too deep", "simpler"], &[]),
    ),
];

#[test]
fn patterns_that_are_refused() {
    check(PATTERNS_THAT_ARE_REFUSED);
}

const PATTERNS_THAT_CANNOT_BLOW_UP: &[Case] = &[
    case(
        "nested repetition",
        trap,
        Grep,
        || json!({ "pattern": "^(a+)+$" }),
        Is("No matches in `.` (1 file searched)."),
    ),
    case(
        "overlapping alternatives",
        trap,
        Grep,
        || json!({ "pattern": "^(a|a)*$|^needle$" }),
        Is("a.txt\n2: needle\n\n[1 match in 1 file]"),
    ),
    case(
        "many stars in a name",
        |tree| {
            tree.file(&"a".repeat(200), "");
        },
        Glob,
        || json!({ "pattern": "*a".repeat(200) + "b" }),
        Shows(&["No files match"], &[]),
    ),
    case(
        "a rule of many stars",
        |tree| {
            tree.file(".gitignore", "*a".repeat(400) + "b\n").file(&"a".repeat(200), "needle\n");
        },
        Grep,
        needle,
        Shows(&["[1 match"], &[]),
    ),
];

#[test]
fn patterns_that_cannot_blow_up() {
    check(PATTERNS_THAT_CANNOT_BLOW_UP);
}
