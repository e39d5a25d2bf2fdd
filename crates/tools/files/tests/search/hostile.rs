//! Trees and arguments that mean harm or are odd, each with what must come of it.

mod arguments;
mod contents;
mod names;
mod no_files;
mod paths;
mod patterns;
mod races;

use serde_json::{Value, json};

use crate::world::{Outcome, Tool, Tree};

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

/// Every case is tried; all that fail are listed.
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

/// A tree that has one match.
fn a(tree: &Tree) -> &Tree {
    tree.file("a.txt", "needle\n")
}

/// What takes a backtracking engine forever.
fn trap(tree: &Tree) {
    tree.file("a.txt", format!("{}!\nneedle\n", "a".repeat(100_000)));
}

/// What a search for a needle shows of that tree.
const ONLY_A: &str = "a.txt\n1: needle\n\n[1 match in 1 file]";
