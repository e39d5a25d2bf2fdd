//! Paths that lead elsewhere.

use super::Expected::{Fails, Is};
use super::{Case, at, case, check, nothing};
use crate::world::Tool::{Glob, Grep};

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
