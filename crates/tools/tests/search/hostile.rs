//! Trees and arguments that mean harm or are odd, each with what must come of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::world::Tool::{self, Glob, Grep};
use crate::world::{Outcome, Tree};

struct Case {
    name: &'static str,
    grow: fn(&Tree),
    tool: Tool,
    arguments: fn() -> Value,
    expected: Expected,
}

enum Expected {
    /// This text, and no other.
    Is(&'static str),
    /// A text with all of these in it, and none of those.
    Shows(Parts, Parts),
    Fails(Parts, Parts),
    Refuses(Parts, Parts),
}

use Expected::{Fails, Is, Refuses, Shows};

type Parts = &'static [&'static str];

const fn case(
    name: &'static str,
    grow: fn(&Tree),
    tool: Tool,
    arguments: fn() -> Value,
    expected: Expected,
) -> Case {
    Case { name, grow, tool, arguments, expected }
}

impl Expected {
    fn is(&self, outcome: &Outcome) -> bool {
        let has = |text: &str, parts: Parts, lacks: Parts| {
            let mut parts = parts.iter();
            parts.all(|part| text.contains(part)) && !lacks.iter().any(|part| text.contains(part))
        };
        match (self, outcome) {
            (Is(expected), Outcome::Shows(text)) => text == expected,
            (Shows(parts, lacks), Outcome::Shows(text))
            | (Fails(parts, lacks), Outcome::Fails(text))
            | (Refuses(parts, lacks), Outcome::Refuses(text)) => has(text, parts, lacks),
            (Is(_) | Shows(..) | Fails(..) | Refuses(..), _) => false,
        }
    }
}

/// Every case is tried; all that fail are told.
fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for Case { name, grow, tool, arguments, expected } in cases {
        let tree = Tree::new();
        grow(&tree);
        let outcome = tree.call(*tool, &arguments());
        if !expected.is(&outcome) {
            wrong.push(format!("{name}: {outcome:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn nothing(_: &Tree) {}

fn needle() -> Value {
    json!({ "pattern": "needle" })
}

fn all() -> Value {
    json!({ "pattern": "**" })
}

/// A search for this.
fn of(pattern: impl Into<String>) -> Value {
    json!({ "pattern": pattern.into() })
}

/// A search for a needle, with one more argument.
fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut arguments = needle();
    arguments[name] = value.into();
    arguments
}

/// A search for a needle there.
fn at(path: &str) -> Value {
    with("path", path)
}

fn utf16(text: &str, encode: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}").encode_utf16().flat_map(encode).collect()
}

/// A tree that would have one match.
fn a(tree: &Tree) -> &Tree {
    tree.file("a.txt", "needle\n")
}

/// What takes a backtracking engine forever.
fn trap(tree: &Tree) {
    tree.file("a.txt", format!("{}!\nneedle\n", "a".repeat(100_000)));
}

const ONLY_A: &str = "a.txt\n1: needle\n\n[1 match in 1 file]";

const THINGS_THAT_ARE_NO_FILES: &[Case] = &[
    case(
        "a link to its own folder",
        |tree| {
            a(tree).link("loop", ".");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "two folders that link to each other",
        |tree| {
            a(tree).link("x/y", "../z").link("z/x", "../x");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a link to itself",
        |tree| {
            a(tree).link("self", "self");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a link to a file outside",
        |tree| {
            a(tree).link("out.txt", tree.outside().join("secret.txt"));
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a link to a folder outside",
        |tree| {
            a(tree).link("out", tree.outside());
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a link to a file beside it",
        |tree| {
            a(tree).link("b.txt", "a.txt");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "links are not listed",
        |tree| {
            a(tree).link("b.txt", "a.txt").link("out", tree.outside());
        },
        Glob,
        || json!({ "pattern": "**" }),
        Is("a.txt\n\n[1 file]"),
    ),
    case(
        "a pipe",
        |tree| {
            a(tree).pipe("pipe.txt");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a pipe is not listed",
        |tree| {
            a(tree).pipe("pipe.txt");
        },
        Glob,
        || json!({ "pattern": "*" }),
        Is("a.txt\n\n[1 file]"),
    ),
    case(
        "a pipe as the path",
        |tree| {
            a(tree).pipe("pipe");
        },
        Grep,
        || json!({ "pattern": "needle", "path": "pipe" }),
        Fails(&["named pipe"], &[]),
    ),
    case(
        "a pipe as a rule file",
        |tree| {
            a(tree).pipe(".gitignore").pipe(".ignore");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a rule file that never ends",
        |tree| {
            a(tree).link(".gitignore", "/dev/zero");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a rule file linked from outside",
        |tree| {
            fs::write(tree.outside().join("rules"), "*\n").unwrap();
            a(tree).link(".gitignore", tree.outside().join("rules"));
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a folder as a rule file",
        |tree| {
            a(tree).file(".gitignore/x", "*");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a device linked into the tree",
        |tree| {
            a(tree).link("zero", "/dev/zero");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
    case(
        "a link to proc",
        |tree| {
            a(tree).link("proc", "/proc/self");
        },
        Grep,
        needle,
        Is(ONLY_A),
    ),
];

#[test]
fn things_that_are_no_files() {
    check(THINGS_THAT_ARE_NO_FILES);
}

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

const ARGUMENTS_THAT_ARE_OUT_OF_BOUNDS: &[Case] = &[
    case(
        "limit 0",
        nothing,
        Grep,
        || with("limit", json!(0)),
        Refuses(&["`limit` is 0", "1 to 1000"], &[]),
    ),
    case(
        "limit 1001",
        nothing,
        Grep,
        || with("limit", json!(1001)),
        Refuses(&["`limit` is 1001"], &[]),
    ),
    case("limit below 0", nothing, Grep, || with("limit", json!(-1)), Refuses(&["limit"], &[])),
    case(
        "limit 0 of files",
        nothing,
        Glob,
        || with("limit", json!(0)),
        Refuses(&["`limit` is 0", "1 to 2000"], &[]),
    ),
    case(
        "limit 2001 of files",
        nothing,
        Glob,
        || with("limit", json!(2001)),
        Refuses(&["`limit` is 2001"], &[]),
    ),
    case(
        "huge context",
        nothing,
        Grep,
        || with("context", json!(u64::MAX)),
        Refuses(&["`context`", "0 to 20"], &[]),
    ),
    case(
        "an unknown argument",
        nothing,
        Grep,
        || with("patern", json!("x")),
        Refuses(&["patern", "expected"], &[]),
    ),
    case(
        "an unknown mode",
        nothing,
        Grep,
        || with("mode", json!("words")),
        Refuses(&["mode", "words", "lines"], &[]),
    ),
    case(
        "an unknown case",
        nothing,
        Grep,
        || with("case", json!("upper")),
        Refuses(&["upper", "smart"], &[]),
    ),
    case(
        "an unknown type",
        nothing,
        Grep,
        || with("type", json!("pyton")),
        Refuses(&["`pyton` is not known", "python", "`glob`"], &[]),
    ),
    case(
        "all types",
        nothing,
        Grep,
        || with("type", json!("\x1b")),
        Refuses(&["\\u{1b}"], &["\x1b"]),
    ),
    case("globs of numbers", nothing, Grep, || with("glob", json!([1])), Refuses(&["glob"], &[])),
    case(
        "too many globs",
        nothing,
        Grep,
        || with("glob", json!(vec!["*"; 33])),
        Refuses(&["33 patterns are more than 32"], &[]),
    ),
    case("no pattern", nothing, Grep, || json!({}), Refuses(&["pattern"], &[])),
    case("no object", nothing, Grep, || json!([]), Refuses(&["object"], &[])),
];

#[test]
fn arguments_that_are_out_of_bounds() {
    check(ARGUMENTS_THAT_ARE_OUT_OF_BOUNDS);
}

const PATHS_THAT_LEAD_ELSEWHERE: &[Case] = &[
    case(
        "up",
        nothing,
        Grep,
        || at("../outside"),
        Fails(&["outside of what may be read"], &["needle"]),
    ),
    case(
        "up, for files",
        nothing,
        Glob,
        || at(".."),
        Fails(&["outside of what may be read"], &["secret"]),
    ),
    case("absolute", nothing, Grep, || at("/etc"), Fails(&["outside of what may be read"], &[])),
    case("proc", nothing, Grep, || at("/proc/self"), Fails(&["outside of what may be read"], &[])),
    case(
        "through a link",
        |tree| {
            tree.link("out", tree.outside());
        },
        Grep,
        || at("out"),
        Fails(&["outside of what may be read"], &["needle"]),
    ),
    case(
        "a link that stays inside",
        |tree| {
            tree.file("in/a.txt", "needle\n").link("link", "in");
        },
        Grep,
        || at("link"),
        Is("in/a.txt\n1: needle\n\n[1 match in 1 file]"),
    ),
    case("not there", nothing, Grep, || at("nowhere"), Fails(&["does not exist"], &[])),
    case("empty", nothing, Grep, || at(""), Fails(&["empty"], &[])),
    case("a NUL", nothing, Grep, || at("a\0b"), Fails(&["NUL"], &[])),
    case(
        "the repository itself",
        |tree| {
            tree.file(".git/config", "needle\n");
        },
        Grep,
        || at(".git"),
        Fails(&["`.git` is never searched"], &[]),
    ),
    case(
        "a file of the repository",
        |tree| {
            tree.file("x/.git/config", "needle\n");
        },
        Grep,
        || at("x/.git/config"),
        Fails(&["`.git` is never searched"], &[]),
    ),
    case(
        "our own folder",
        |tree| {
            tree.file(".antiphon/journal.db", "needle\n");
        },
        Grep,
        || at(".antiphon"),
        Fails(&[".antiphon"], &["needle"]),
    ),
    case(
        "our own folder, for files",
        |tree| {
            tree.file(".antiphon/journal.db", "");
        },
        Glob,
        || at(".antiphon/"),
        Fails(&[".antiphon"], &["journal.db"]),
    ),
    case(
        "a file, for files",
        |tree| {
            tree.file("a.txt", "");
        },
        Glob,
        || at("a.txt"),
        Fails(&["is a file", "`read`"], &[]),
    ),
];

#[test]
fn paths_that_lead_elsewhere() {
    check(PATHS_THAT_LEAD_ELSEWHERE);
}
