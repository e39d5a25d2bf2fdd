//! Invalid files, each with its line and the reason.

use std::path::Path;

use antiphon_agent_files::{FILE_BYTES_MAX, LIST_MAX, NODES_MAX, WORD_BYTES_MAX, parse};
use antiphon_core::{CONTEXT_BYTES_MAX, DESCRIPTION_BYTES_MAX};

use super::read;

/// Front matter with a good description behind `fields`, and a body.
fn with(fields: &str) -> String {
    format!("---\n{fields}\ndescription: d\n---\nb")
}

/// So many words with commas between them.
fn words(count: usize) -> String {
    (0..count).map(|n| format!("t{n}")).collect::<Vec<_>>().join(", ")
}

/// Each file is refused, in that line and for that reason.
fn assert_refused(cases: &[(String, usize, &str)]) {
    let wrong = cases.iter().filter_map(|(text, line, reason)| {
        let shown: String = text.chars().take(80).collect();
        match read("a", text) {
            Err(fault) if fault.line == *line && fault.reason.contains(reason) => None,
            other => Some(format!("{shown:?}: not line {line}: {reason}, but {other:?}")),
        }
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_malformed_file_is_refused() {
    assert_refused(&[
        (String::new(), 1, "the file is empty"),
        (" \n\n\t\n".to_owned(), 1, "the file is empty"),
        ("###\n".to_owned(), 1, "the file is blank"),
        ("---\ndescription: d\n---\n \n".to_owned(), 4, "nothing follows the front matter"),
        ("---\ndescription: d\n---\n\u{200b}".to_owned(), 4, "nothing follows the front matter"),
        ("---\nx: y\n---\n".to_owned(), 2, "there is no field `x`"),
        ("---\ndescription: d\nbody".to_owned(), 1, "no line `---` at its end"),
        ("\n\n---\ndescription: d\n---\nb".to_owned(), 3, "must begin in line 1"),
        ("a\nb\0".to_owned(), 2, "a control character here, U+0000"),
        ("a\n\nb\u{1b}[2J".to_owned(), 3, "a control character here, U+001B"),
        ("a\rb".to_owned(), 1, "a control character here, U+000D"),
        ("---\n---\nb".to_owned(), 1, "`description` is missing"),
        ("---\n# nothing\n---\nb".to_owned(), 1, "`description` is missing"),
        ("---\nfront\n---\nb".to_owned(), 2, "front matter is made of fields"),
        ("---\n- a\n---\nb".to_owned(), 2, "front matter is made of fields"),
        ("---\n\ndescription: a: b\n---\nb".to_owned(), 3, "put a text that holds `: ` in quotes"),
        ("---\ndescription: \"a\n---\nb".to_owned(), 3, "quoted scalar"),
        ("---\ndescription: d\n\tx: y\n---\nb".to_owned(), 2, "found a tab"),
        ("---\ndescription: [\n---\nb".to_owned(), 2, "unclosed bracket '['"),
        ("---\ndescription: d\n...\ndescription: d\n---\nb".to_owned(), 4, "second document"),
        ("---\n%YAML 1.2\ndescription: d\n---\nb".to_owned(), 2, "directive"),
    ]);
}

#[test]
fn an_invalid_field_is_refused() {
    assert_refused(&[
        (with("color: red"), 2, "there is no field `color`; there are name, description, profile"),
        (with("# x\n\nTools: read"), 4, "there is no field `Tools`"),
        (with("description: e"), 3, "`description` is defined already, in line 2"),
        (with("? [a]\n: b"), 2, "the name of a field must be a text"),
        (with("name: other"), 2, "`name` is `other`, but the file is `a.md`"),
        (with("name: a/b"), 2, "not '/'"),
        (with("name: \"a\\u200b\""), 2, "a name may hold letters"),
        (with("name:"), 2, "`name` has no value"),
        (with("tools:"), 2, "`tools` has no value: give one or omit the field"),
        (with("tools: null"), 2, "`tools` has no value"),
        (with("profile: claude-code"), 2, "there is no profile `claude-code`; there is `native`"),
        (with("model: sonnet"), 2, "`sonnet` names no model: write PROVIDER/MODEL"),
        (with("model: []"), 2, "`model` is empty"),
        (with("fallbacks:\n- a/b\n- c"), 4, "`c` names no model"),
        (with("tools: {a: b}"), 2, "`tools` takes a list"),
        (with("tools: [[a]]"), 2, "`tools` takes a list of texts"),
        (with("tools: read,, grep"), 2, "`tools` has a blank entry"),
        (with("tools:\n- read\n- read"), 4, "`tools` has `read` twice"),
        (with("tools: mcp__*"), 2, "`mcp__*` is not a tool name"),
        (with("tools: Bash(git *)"), 2, "`Bash(git *)` is not a tool name"),
        (with(&format!("tools: [{}]", words(LIST_MAX + 1))), 2, "more than 64 entries"),
        (with("intents: [review]"), 2, "an intent and its JSON Schema"),
        (with("intents:\n  review: {type: 7}"), 3, "`review`"),
        (with(&format!("silent_intents: {}", "x".repeat(WORD_BYTES_MAX + 1))), 2, "200 bytes"),
        (with("agents: [user]"), 2, "the name `user` is reserved"),
        (with("agents: \"a\\u2060b\""), 2, "a name may hold letters"),
    ]);
}

#[test]
fn an_invalid_runtime_or_limit_is_refused() {
    assert_refused(&[
        (with("runtimes: []"), 2, "could run nowhere"),
        (with("runtimes: {kind: local}"), 2, "`runtimes` takes a list"),
        (with("runtimes: [a b]"), 2, "`a b` is not a runtime"),
        (with("runtimes:\n- config: {}"), 3, "the runtime has no `kind`"),
        (with("runtimes:\n- kind: sandbox\n  config: 3"), 4, "`config` takes fields"),
        (with("runtimes:\n- kind: local\n  config: {}"), 4, "`local` takes no `config`"),
        (with("runtimes:\n- kind: k8s\n  url: x"), 4, "a runtime has no field `url`"),
        (with("limits: 3"), 2, "`limits` takes fields"),
        (with("limits:\n  turns: 0"), 3, "`turns` takes a whole number from 1 on, not `0`"),
        (with("limits:\n  depth: -1"), 3, "not `-1`"),
        (with("limits:\n  tasks: 1.5"), 3, "not `1.5`"),
        (with("limits:\n  tokens: 99999999999999999999"), 3, "`tokens` takes a whole number"),
        (with("limits:\n  cost_usd: 0"), 3, "`cost_usd` takes an amount"),
        (with("limits:\n  cost_usd: .inf"), 3, "not `.inf`"),
        (with("limits:\n  cost_usd: 1000000.1"), 3, "`cost_usd` takes an amount"),
        (with("limits:\n  turns:"), 3, "`turns` has no value"),
        (with("limits:\n  seconds: 3"), 3, "there is no limit `seconds`; there are turns"),
    ]);
}

#[test]
fn an_unsupported_schema_or_text_is_refused() {
    assert_refused(&[
        (with("output_schema: [a]"), 2, "write a schema, or the path of one"),
        (with("output_schema: /etc/passwd"), 2, "must be a path beneath the folder"),
        (with("output_schema: a/../../b"), 2, "must be a path beneath the folder"),
        (with("output_schema: none.json"), 2, "none.json: there is no such file"),
        (with("output_schema: {type: nonsense}"), 2, "`output_schema`"),
        (with("output_schema: {minimum: .nan}"), 2, "JSON has no number `.nan`"),
        (with("output_schema: {$ref: 'https://example.com/x'}"), 2, "`output_schema`"),
        (with("x: &a b"), 2, "anchors are not supported"),
        (with("x: *a"), 2, "aliases are not supported"),
        (with("x: !!binary aGk="), 2, "tags are not supported"),
    ]);
}

#[test]
fn what_is_too_long_is_refused() {
    assert_refused(&[
        ("---\ndescription: ' '\n---\nb".to_owned(), 2, "`description` is blank"),
        ("---\ndescription: []\n---\nb".to_owned(), 2, "`description` takes a text"),
        (
            format!("---\ndescription: {}\n---\nb", "x".repeat(DESCRIPTION_BYTES_MAX + 1)),
            2,
            "`description` has more than 1024 bytes",
        ),
        (with(&format!("x: [{}]", words(NODES_MAX))), 2, "there are more than 4096 values"),
        ("x".repeat(CONTEXT_BYTES_MAX + 1), 1, "the context has more than"),
        ("x".repeat(FILE_BYTES_MAX + 1), 1, "the file has more than"),
        (with(&format!("# {}", "x".repeat(70_000))), 1, "the front matter has more than"),
    ]);
}

#[test]
fn a_file_that_is_not_utf8_is_refused_with_its_line() {
    let fault = parse("a", b"a\nb\n\xff", &mut |_: &Path| Err(String::new())).unwrap_err();
    assert_eq!(fault.to_string(), "line 3: the file is not UTF-8 text");
}

#[test]
fn the_name_of_the_file_is_the_name_of_the_agent() {
    assert_eq!(read("Müller 2", "x").unwrap().name.as_str(), "Müller 2");
    for stem in ["user", "", " a", "a ", "a\u{200d}b", "a:b", "-a"] {
        assert_eq!(read(stem, "x").unwrap_err().line, 1, "{stem:?}");
    }
}

#[test]
fn what_would_grow_or_never_end_is_refused() {
    let laughs: String = std::iter::once("a: &a [x, x]\n".to_owned())
        .chain((0..30).map(|n| format!("b{n}: &b{n} [*a, *a]\n")))
        .collect();
    assert!(read("a", &with(&laughs)).unwrap_err().reason.contains("anchors are not supported"));
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
        for depth in [40, 2000] {
            let deep = format!("---\nx:\n {}1{}\n---\nb", open.repeat(depth), close.repeat(depth));
            let fault = read("a", &deep).unwrap_err();
            assert_eq!(fault.line, 3, "{fault}");
        }
    }
    let stairs: Vec<String> = (0..60).map(|n| " ".repeat(n) + "k:").collect();
    assert!(read("a", &with(&stairs.join("\n"))).is_err());
    for never in
        ["{---", "[---", "{...", "? ? ? ? ?", "- - - -\n- -", "&a *a", "<<: *a", "!<", "|9"]
    {
        assert!(read("a", &with(never)).is_err(), "{never}");
    }
}
