//! Contents and arguments that go wrong elsewhere.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{Case, calls, edits, reads, writes};
use crate::world::World;

fn crlf(world: &World) {
    world.put("w.txt", "one\r\ntwo\r\nthree\r\n");
}

fn marked(world: &World) {
    world.put("w.txt", "\u{feff}one\ntwo");
}

fn latin(world: &World) {
    world.put("w.txt", b"gr\xfcn\nwei\xdf\n");
}

fn utf16(world: &World) {
    let text = "\u{feff}one\r\ngr\u{fc}n\r\n";
    world.put("w.txt", text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>());
}

fn twice(world: &World) {
    world.put("w.txt", "same\nother\nsame\n");
}

pub(crate) fn reading() -> Vec<Case> {
    let ranged = |name, offset, limit| {
        calls(name, "read", json!({ "path": "a.txt", "offset": offset, "limit": limit }))
    };
    vec![
        reads("an empty file", "w.txt").given(|world| world.put("w.txt", "")).says("is empty"),
        reads("no line break at the end", "w.txt").given(marked).says("no line break at the end"),
        reads("a byte order mark is not shown", "w.txt").given(marked).says("     1\tone\n"),
        reads("line breaks of Windows", "w.txt").given(crlf).says("two\n     3\tthree\n[lines end"),
        reads("UTF-16", "w.txt").given(utf16).says("2\tgr\u{fc}n\n[decoded from UTF-16LE]"),
        reads("Latin letters", "w.txt").given(latin).says("wei\u{df}\n[not UTF-8: decoded as"),
        reads("a broken character", "w.txt")
            .given(|world| world.put("w.txt", &"\u{fc}\u{fc}\u{fc}\n".as_bytes()[..5]))
            .says("\u{fc}"),
        reads("zeros", "w.bin")
            .given(|world| world.put("w.bin", [0; 5_000]))
            .says("is not text but data: 5000 bytes, not shown"),
        reads("a program", "w.bin")
            .given(|world| world.put("w.bin", b"\x7fELF\x02\x01\x01\0\0"))
            .says("an ELF program"),
        reads("a text that says it is a picture", "w.png")
            .given(|world| world.put("w.png", "not a picture\n"))
            .says("1\tnot a picture"),
        reads("a picture that says it is a text", "w.txt")
            .given(|world| world.put("w.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"))
            .says("<image/png of 16 bytes>"),
        reads("a picture too large", "w.gif")
            .given(|world| world.put("w.gif", [b"GIF89a".to_vec(), vec![1; 5_000_000]].concat()))
            .fails("Make a smaller copy"),
        reads("hidden instructions", "w.txt")
            .given(|world| world.put("w.txt", "hi\u{e0068}\u{e0069} \u{202e}ih\n"))
            .says(r"hi\u{e0068}\u{e0069} \u{202e}ih"),
        ranged("an offset behind the end", json!(3), json!(1))
            .fails("has 2 lines, there is nothing"),
        ranged("an offset far behind the end", json!(u64::MAX), json!(1)).fails("has 2 lines"),
        ranged("an offset of 0", json!(0), json!(1)).says("1\talpha\n[lines 1-1 of 2: continue"),
        ranged("numbers as texts", json!("2"), json!("5")).says("2\tbeta"),
        ranged("nulls", json!(null), json!(null)).says("1\talpha"),
        ranged("an enormous limit", json!(2), json!(u64::MAX)).says("2\tbeta"),
        ranged("a limit of 0", json!(1), json!(0)).refuses("`limit`: expected 1 or more"),
        ranged("a negative offset", json!(-1), json!(1)).refuses("`offset`: expected a whole"),
        ranged("half an offset", json!(1.5), json!(1)).refuses("`offset`: expected a whole"),
        ranged("a word as an offset", json!("end"), json!(1)).refuses("`offset`: expected"),
        ranged("a list as a limit", json!(1), json!([1])).refuses("`limit`: expected a whole"),
    ]
}

pub(crate) fn writing() -> Vec<Case> {
    let read_it = "this task has not read it: read it first";
    vec![
        writes("a file that was not read", "a.txt", "x")
            .fails(read_it)
            .leaves("a.txt", "alpha\nbeta\n"),
        writes("a file that was not read, in full mode", "a.txt", "x")
            .mode(antiphon_file_tools::Mode::Full)
            .fails(read_it),
        writes("the same again", "a.txt", "alpha\nbeta\n").says("exactly this content already"),
        writes("nothing into a file", "a.txt", "").after_reading("a.txt").leaves("a.txt", ""),
        writes("over a picture", "w.png", "x")
            .given(|world| world.put("w.png", b"\x89PNG\r\n\x1a\n"))
            .after_reading("w.png")
            .says("not UTF-8: no diff")
            .leaves("w.png", "x"),
        writes("over line breaks of Windows", "w.txt", "one\n")
            .given(crlf)
            .after_reading("w.txt")
            .says("lines ended with CRLF before"),
        writes("a read-only file", "a.txt", "x")
            .given(|world| {
                let locked = std::fs::Permissions::from_mode(0o444);
                std::fs::set_permissions(world.path("a.txt"), locked).unwrap();
            })
            .after_reading("a.txt")
            .fails("has no write permission")
            .leaves("a.txt", "alpha\nbeta\n"),
        calls("no content", "write", json!({ "path": "new" })).refuses("missing field `content`"),
        calls("an object as content", "write", json!({ "path": "new.json", "content": {} }))
            .refuses("`content`")
            .leaves_nothing_at("new.json"),
        calls("more than it takes", "write", json!({ "path": "x", "content": "", "mode": 511 }))
            .refuses("unknown field `mode`"),
        writes("unpaired quotes and controls", "w.txt", "\"'\u{1}\u{7f}\u{feff}")
            .leaves("w.txt", "\"'\u{1}\u{7f}\u{feff}"),
    ]
}

pub(crate) fn editing() -> Vec<Case> {
    [matching(), kept(), arguments()].into_iter().flatten().collect()
}

fn matching() -> Vec<Case> {
    let both = |name, one: &str, other: &str| {
        let edits = json!([{ "old": one, "new": "1" }, { "old": other, "new": "2" }]);
        calls(name, "edit", json!({ "path": "a.txt", "edits": edits }))
    };
    vec![
        edits("what is there twice", "w.txt", "same", "x")
            .given(twice)
            .fails("2 times, at lines 1, 3: add lines around it")
            .leaves("w.txt", "same\nother\nsame\n"),
        edits("what overlaps itself", "w.txt", "aa", "x")
            .given(|world| world.put("w.txt", "aaa\n"))
            .fails("2 times"),
        edits("what is not there", "a.txt", "alpah\nbeta", "x").fails("Most similar is this"),
        edits("a text like nothing in the file", "a.txt", "zzzzzzzz", "x")
            .fails("Nothing in it is similar"),
        edits("what was done before", "a.txt", "gamma gamma", "beta").fails("made already"),
        edits("numbers of lines", "a.txt", "     1\talpha", "x").fails("without the numbers"),
        both("edits that overlap", "alpha\nbe", "beta").fails("edits 1 and 2 overlap at line 2"),
        both("the same edit twice", "alpha", "alpha").fails("edits 1 and 2 overlap at line 1"),
        both("one edit that fits and one that does not", "alpha", "none")
            .fails("edit 2 of 2: `old` is not in the file")
            .leaves("a.txt", "alpha\nbeta\n"),
        both("edits that touch", "alpha\n", "beta\n").leaves("a.txt", "12"),
        both("edits in the other order", "beta", "alpha").leaves("a.txt", "2\n1\n"),
        both("an edit of what another makes", "alpha", "1").fails("edit 2 of 2"),
        edits("a file that is not there", "none.txt", "a", "b").fails("use write to make it"),
    ]
}

fn kept() -> Vec<Case> {
    vec![
        edits("within line breaks of Windows", "w.txt", "one\ntwo\n", "1\n2\n")
            .given(crlf)
            .leaves("w.txt", "1\r\n2\r\nthree\r\n"),
        edits("behind a byte order mark", "w.txt", "one", "1")
            .given(marked)
            .leaves("w.txt", "\u{feff}1\ntwo"),
        edits("without a line break at the end", "w.txt", "two", "2\n3")
            .given(marked)
            .leaves("w.txt", "\u{feff}one\n2\n3"),
        edits("in UTF-16", "w.txt", "gr\u{fc}n", "rot").given(utf16).says("still UTF-16").leaves(
            "w.txt",
            {
                let text = "\u{feff}one\r\nrot\r\n";
                text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
            },
        ),
        edits("in broken UTF-16", "w.txt", "a", "b")
            .given(|world| world.put("w.txt", b"\xff\xfea\0\x00\xd8b\0"))
            .fails("broken UTF-16"),
        edits("plain letters among Latin ones", "w.txt", "wei", "hei")
            .given(latin)
            .leaves("w.txt", b"gr\xfcn\nhei\xdf\n"),
        edits("Latin letters, edited", "w.txt", "gr\u{fc}n", "rot")
            .given(latin)
            .fails("only plain ASCII text can be replaced")
            .leaves("w.txt", b"gr\xfcn\nwei\xdf\n"),
        edits("a program, edited", "w.bin", "ELF", "FLE")
            .given(|world| world.put("w.bin", b"\x7fELF\x02\x01\x01\0\0"))
            .fails("it is no text but an ELF program"),
        edits("an empty file, edited", "w.txt", "a", "b")
            .given(|world| world.put("w.txt", ""))
            .fails("`old` is not in the file"),
        edits("a locked file", "a.txt", "alpha", "x")
            .given(|world| {
                let locked = std::fs::Permissions::from_mode(0o400);
                std::fs::set_permissions(world.path("a.txt"), locked).unwrap();
            })
            .fails("has no write permission"),
    ]
}

fn arguments() -> Vec<Case> {
    let with = |name, edits| calls(name, "edit", json!({ "path": "a.txt", "edits": edits }));
    vec![
        edits("nothing to replace", "a.txt", "", "x").refuses("`edits[0].old`: expected the text"),
        edits("nothing to change", "a.txt", "alpha", "alpha").refuses("are the same"),
        with("no edits", json!([])).refuses("`edits`: expected 1 to 1000"),
        with("edits of another kind", json!(7)).refuses("`edits`: expected a list"),
        with("an edit without its new text", json!([{ "old": "a" }]))
            .refuses("missing field `new`"),
        with("an edit with a wrong name", json!([{ "old": "alpha", "new": "x", "al": true }]))
            .refuses("unknown field `al`"),
        with("an edit by its other names", json!([{ "old_string": "alpha", "new_string": "x" }]))
            .leaves("a.txt", "x\nbeta\n"),
        with(
            "an edit by both its names",
            json!([{ "old": "alpha", "old_string": "b", "new": "x" }]),
        )
        .refuses("duplicate field"),
        with("a single edit", json!({ "old": "alpha", "new": "x" })).leaves("a.txt", "x\nbeta\n"),
        with("edits as a text", json!(r#"[{"old":"alpha","new":"x"}]"#))
            .leaves("a.txt", "x\nbeta\n"),
        with("edits as a text that is no JSON", json!("alpha -> x")).refuses("not a text"),
        with("more edits than fit", json!(vec![json!({ "old": "a", "new": "b" }); 1_001]))
            .refuses("not 1001"),
    ]
}
