//! Links, pipes and devices in the tree.

use std::fs;

use serde_json::json;

use super::Expected::{Fails, Is};
use super::{Case, ONLY_A, a, case, check, needle};
use crate::world::Tool::{Glob, Grep};

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
