//! `edit`.

use antiphon_file_tools::FILE_BYTES_MAX;
use serde_json::json;

use crate::world::{Outcome, World};

/// Edits a file of these contents; gives what came of it and what the file is then.
fn edited(contents: &str, old: &str, new: &str) -> (Outcome, String) {
    let world = World::new();
    world.put("f", contents);
    let outcome = world.edit("f", old, new);
    world.is_unharmed();
    (outcome, String::from_utf8(world.bytes("f")).unwrap())
}

#[test]
fn what_changed_is_shown() {
    let world = World::new();
    assert_eq!(
        world.edit("a.txt", "beta", "gamma").tool_output(),
        "Edited `a.txt`: 1 replacement at line 2.\n@@ -1,2 +1,2 @@\n alpha\n-beta\n+gamma\n"
    );
}

#[test]
fn edits_far_from_each_other_are_shown_each_with_its_lines() {
    let world = World::new();
    let lines: Vec<String> = (1..=200).map(|i| format!("line {i:03}")).collect();
    world.put("f", lines.join("\n") + "\n");
    let edits = json!([
        { "old": "line 150\n", "new": "" },
        { "old": "line 002", "new": "two\nand a half" },
    ]);
    let tool_output = world.call("edit", &json!({ "path": "f", "edits": edits })).tool_output();
    assert_eq!(
        tool_output,
        "Edited `f`: 2 replacements at lines 2, 150.\n\
         @@ -1,5 +1,6 @@\n line 001\n-line 002\n+two\n+and a half\n line 003\n line 004\n line 005\n\
         @@ -147,7 +148,6 @@\n line 147\n line 148\n line 149\n-line 150\n line 151\n line 152\n \
         line 153\n"
    );
}

#[test]
fn all_replaces_every_occurrence() {
    let world = World::new();
    world.put("f", "aa aaa\nb\naa");
    let arguments = json!({ "path": "f", "edits": [{ "old": "aa", "new": "x", "all": true }] });
    assert!(
        world.call("edit", &arguments).tool_output().contains("3 replacements at lines 1, 1, 3")
    );
    assert_eq!(world.bytes("f"), b"x xa\nb\nx");
}

#[test]
fn line_breaks_follow_the_place_in_a_mixed_file() {
    let (_, text) = edited("a\nb\r\nc\r\n", "b\nc", "1\n2");
    assert_eq!(text, "a\n1\r\n2\r\n");
    let (_, text) = edited("a\nb\r\nc\n", "a", "1\n2");
    assert_eq!(text, "1\n2\nb\r\nc\n");
    let (_, text) = edited("a\r\nb\r\nc", "\nb", "");
    assert_eq!(text, "a\r\nc");
    // An explicit `\r` is intended.
    let (_, text) = edited("a\r\nb\r\n", "a\r\n", "a\n");
    assert_eq!(text, "a\nb\r\n");
}

#[test]
fn invisible_differences_are_forgiven_and_lines_that_stay_are_untouched() {
    let table = [
        // Trailing spaces, in the file and in `old`. The first line is repeated: it stays as it is.
        ("one  \ntwo\t\nthree\n", "one\ntwo", "one\n2", "one  \n2\nthree\n"),
        ("one\ntwo\nthree\n", "one  \ntwo ", "1\n2", "1\n2\nthree\n"),
        // Quotes, dashes and spaces.
        ("say(“hi”) // a–b\n", "say(\"hi\")", "say(\"ho\")", "say(\"ho\") // a–b\n"),
        ("say(\"hi\")\n", "say(“hi”)", "tell()", "tell()\n"),
        ("it’s\u{a0}so — yes\n", "it's so - yes", "no", "no\n"),
        // Within a line, with other spaces around.
        ("x =\u{a0}1; y = 2;\n", "x = 1;", "x = 3;", "x = 3; y = 2;\n"),
        // Line breaks of Windows stay.
        ("if  \r\n  a\r\n", "if\n  a", "if\n  b", "if  \r\n  b\r\n"),
        // Without a line break at the end.
        ("a \nb ", "a\nb", "a\nc", "a \nc"),
        ("a \nb \n", "a\nb\n", "", ""),
    ];
    for (contents, old, new, expected) in table {
        let (outcome, text) = edited(contents, old, new);
        assert_eq!(text, expected, "{contents:?} {old:?} {outcome:?}");
        let Outcome::Said(tool_output) = outcome else { panic!("{outcome:?}") };
        assert!(
            tool_output.contains("[`old` differed from the file in white space"),
            "{tool_output}"
        );
    }
}

#[test]
fn new_lines_are_indented_as_the_file_is() {
    let table = [
        // The file has tabs, the model writes four spaces.
        (
            "fn f() {\n\tif a {\n\t\tb();\n\t}\n}\n",
            "    if a {\n        b();\n    }\n",
            "    if a {\n        c();\n        if d {\n            e();\n        }\n    }\n",
            "fn f() {\n\tif a {\n\t\tc();\n\t\tif d {\n\t\t\te();\n\t\t}\n\t}\n}\n",
        ),
        // The file has four spaces, the model writes two.
        (
            "def f():\n    if a:\n        b()\n",
            "  if a:\n    b()\n",
            "  if a:\n    b()\n    c()\n  d()\n",
            "def f():\n    if a:\n        b()\n        c()\n    d()\n",
        ),
        // The file has spaces, the model writes a tab.
        ("x:\n    a\n", "\ta\n", "\ta\n\t\tb\n", "x:\n    a\n        b\n"),
        // The model left all of the indentation out.
        (
            "x:\n    if a:\n        b \n",
            "if a:\n    b\n",
            "if a:\n    c\nelse:\n    d\n",
            "x:\n    if a:\n        c\n    else:\n        d\n",
        ),
        // The model left that of the first line out, and only that.
        ("{\n    a; \n    b;\n}\n", "a;\n    b;\n", "a;\n    c;\n", "{\n    a; \n    c;\n}\n"),
        // One line, further in than it is.
        ("{\n  a;\n}\n", "    a;", "    b;", "{\n  b;\n}\n"),
    ];
    for (contents, old, new, expected) in table {
        let (outcome, text) = edited(contents, old, new);
        assert_eq!(text, expected, "{old:?} {outcome:?}");
    }
}

#[test]
fn what_fits_at_several_places_is_not_guessed() {
    let contents = "a  \nb\nx\na \nb\n";
    let (outcome, text) = edited(contents, "a\nb", "c");
    assert!(outcome.failed().contains("at several lines: 1, 4"));
    assert_eq!(text, contents);
    let (outcome, _) = edited("“a” “a”\n", "\"a\"", "c");
    assert!(outcome.failed().contains("at several lines: 1, 1"));
}

#[test]
fn white_space_alone_is_not_looked_for_elsewhere() {
    let (outcome, _) = edited("a\n\nb\n", "\n \n", "x");
    assert!(outcome.failed().contains("`old` is not in the file"));
}

#[test]
fn the_most_similar_place_is_shown() {
    let contents = "fn one() {}\n\nfn compute_total(items: &[Item]) -> u64 {\n    0\n}\n";
    let (outcome, _) = edited(contents, "fn compute_totals(item: &[Item]) -> u32 {\n    0", "x");
    let failed = outcome.failed();
    assert!(
        failed.ends_with("     3\tfn compute_total(items: &[Item]) -> u64 {\n     4\t    0"),
        "{failed}"
    );
}

#[test]
fn an_edit_needs_no_look_before_but_does_not_count_as_one() {
    let world = World::new();
    world.edit("a.txt", "beta", "gamma").tool_output();
    assert!(world.write("a.txt", "x").failed().contains("this task has not read it"));
    world.read("a.txt").tool_output();
    world.edit("a.txt", "gamma", "delta").tool_output();
    world.write("a.txt", "x").tool_output();
}

#[test]
fn an_edit_does_not_hide_the_change_of_another_process() {
    let world = World::new();
    world.read("a.txt").tool_output();
    world.put("a.txt", "alpha\nbeta\nmore\n");
    world.edit("a.txt", "beta", "gamma").tool_output();
    assert!(world.write("a.txt", "x").failed().contains("changed since you read it"));
}

#[test]
fn a_file_too_large_is_left_alone() {
    let world = World::new();
    let file = std::fs::File::create(world.path("huge")).unwrap();
    file.set_len(FILE_BYTES_MAX as u64 + 1).unwrap();
    assert!(world.edit("huge", "a", "b").failed().contains("more than 67108864 bytes"));
    world.put("grows", "a".repeat(80_000));
    let arguments = json!({
        "path": "grows",
        "edits": [{ "old": "a", "new": "b".repeat(1_000), "all": true }],
    });
    assert!(world.call("edit", &arguments).failed().contains("it would have 80000000 bytes"));
    world.put("many", "a".repeat(200_000));
    let arguments = json!({ "path": "many", "edits": [{ "old": "a", "new": "b", "all": true }] });
    assert!(world.call("edit", &arguments).failed().contains("more than 100000 places"));
}

#[test]
fn ten_megabytes_are_edited_in_the_middle() {
    let world = World::new();
    let mut text = "the quick brown fox jumps over the lazy dog\n".repeat(240_000);
    text.insert_str(5_000_016, "needle");
    world.put("big.txt", &text);
    let tool_output = world.edit("big.txt", "needle", "thread").tool_output();
    assert!(tool_output.contains("1 replacement at line 113637."), "{tool_output}");
    assert!(tool_output.len() < 1_000);
    assert_eq!(world.bytes("big.txt"), text.replace("needle", "thread").as_bytes());
}
