//! Paths that leave the project, or cannot be.

use antiphon_file_tools::Mode;
use serde_json::json;

use super::{Case, calls, edits, reads, writes};

pub(crate) fn cases() -> Vec<Case> {
    [reading(), writing(), modes(), impossible()].into_iter().flatten().collect()
}

fn reading() -> Vec<Case> {
    let outside = "outside of what may be read: use a path beneath";
    vec![
        reads("`..` to a file outside", "../outside/secret.txt").fails(outside),
        reads("an absolute path outside", "{outside}/secret.txt").fails(outside),
        reads("the password file", "/etc/passwd").fails(outside),
        reads("the password file, with more slashes", "//etc///passwd").fails(outside),
        reads("the folder above", "..").fails(outside),
        reads("the root of the system", "/").fails(outside),
        reads("many `..`", &"../".repeat(500)).fails(outside),
        reads("something that does not exist outside", "../outside/none").fails(outside),
        reads("`..` behind a folder", "sub/../../outside/secret.txt")
            .given(|world| world.put("sub/x", ""))
            .fails(outside),
        reads("a folder whose name begins like the root", "{root}-other/x")
            .given(|world| {
                let other = world.root.with_file_name("project-other");
                std::fs::create_dir(&other).unwrap();
                std::fs::write(other.join("x"), "x").unwrap();
            })
            .fails(outside),
        reads("the root by its absolute path", "{root}/a.txt").says("alpha"),
        reads("out and in again", "../project/a.txt").says("alpha"),
        reads("out and in again, absolutely", "{root}/../project/a.txt").says("alpha"),
        reads("a dot", "./a.txt").says("alpha"),
        reads("a folder and back", ".git/../a.txt").says("alpha"),
        reads("a folder that does not exist and back", "none/../a.txt").fails("does not exist"),
        reads("a file as a folder", "a.txt/x").fails("does not exist"),
        reads("a file as a folder and back", "a.txt/../a.txt").fails("does not exist"),
        reads("a slash behind a file", "a.txt/").fails("does not exist"),
    ]
}

fn writing() -> Vec<Case> {
    let outside = "outside of what may be written: use a path beneath";
    vec![
        writes("a new file outside by `..`", "../outside/new.txt", "x").fails(outside),
        writes("a new file outside, absolutely", "{outside}/new.txt", "x").fails(outside),
        writes("an old file outside", "{outside}/secret.txt", "x").fails(outside),
        writes("a new folder outside", "../outside/new/new.txt", "x").fails(outside),
        writes("a new file beside the root", "../new.txt", "x").fails(outside),
        writes("in and out through a new folder", "new/../../outside/x", "x")
            .fails("does not exist")
            .leaves_nothing_at("new"),
        writes("through a new folder and back", "new/../b.txt", "x")
            .fails("does not exist")
            .leaves_nothing_at("new"),
        edits("an edit outside", "../outside/secret.txt", "TOP", "top").fails(outside),
        writes("out and in again to a new file", "../project/new.txt", "x")
            .says("Created `new.txt`")
            .leaves("new.txt", "x"),
        writes("absolutely to a new file", "{root}/new/new.txt", "x")
            .says("Created `new/new.txt`")
            .leaves("new/new.txt", "x"),
    ]
}

fn modes() -> Vec<Case> {
    vec![
        reads("reading in read-only mode", "a.txt").mode(Mode::ReadOnly).says("alpha"),
        reads("reading outside in read-only mode", "../outside/secret.txt")
            .mode(Mode::ReadOnly)
            .fails("outside"),
        writes("writing in read-only mode", "new.txt", "x")
            .mode(Mode::ReadOnly)
            .fails("read-only mode")
            .leaves_nothing_at("new.txt"),
        edits("editing in read-only mode", "a.txt", "alpha", "x")
            .mode(Mode::ReadOnly)
            .fails("read-only mode")
            .leaves("a.txt", "alpha\nbeta\n"),
        reads("reading elsewhere in full mode", "../elsewhere/x")
            .mode(Mode::Full)
            .given(|world| world.put("../elsewhere/x", "public\n"))
            .says("public"),
        writes("writing elsewhere in full mode", "{root}/../elsewhere/new/x", "y")
            .mode(Mode::Full)
            .given(|world| world.put("../elsewhere/x", "public\n"))
            .says("Created")
            .leaves("../elsewhere/new/x", "y"),
    ]
}

fn impossible() -> Vec<Case> {
    let long = "x/".repeat(2_100);
    vec![
        reads("no path", "").fails("the path is empty"),
        reads("NUL", "a.txt\0").fails("NUL"),
        reads("NUL before an ending", "a.txt\0.png").fails("NUL"),
        writes("NUL in a new name", "new\0.txt", "x").fails("NUL"),
        edits("NUL in an edit", "a\0.txt", "a", "b").fails("NUL"),
        reads("a path too long", &long).fails("too long"),
        writes("a new path too long", &long, "x").fails("too long"),
        reads("a name too long", &"x".repeat(256)).fails("too long"),
        writes("a new name too long", &"x".repeat(256), "x").fails("too long"),
        reads("the home folder", "~/.ssh/id_rsa").fails("`~` is not expanded"),
        writes("the home folder, written", "~/x", "x")
            .fails("`~` is not expanded")
            .leaves_nothing_at("~"),
        reads("a variable", "$HOME/x").fails("does not exist"),
        reads("an address", "file:///etc/passwd").fails("does not exist"),
        reads("a pattern", "*.txt").fails("does not exist"),
        reads("encoded dots", "%2e%2e/outside/secret.txt").fails("does not exist"),
        reads("dots of another width", "．．/outside/secret.txt").fails("does not exist"),
        reads("backslashes", "..\\outside\\secret.txt").fails("does not exist"),
        calls("no path at all", "read", json!({})).refuses("missing field `path`"),
        calls("a number as a path", "read", json!({ "path": 7 })).refuses("`path`"),
        calls("a list as a path", "read", json!({ "path": ["a.txt"] })).refuses("`path`"),
        calls("an endless name for the path", "read", json!({ "x".repeat(1_000_000): "a.txt" }))
            .refuses("unknown field `xxx"),
        calls("another name for the path", "read", json!({ "file": "a.txt" }))
            .refuses("unknown field `file`"),
    ]
}
