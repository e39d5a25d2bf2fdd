//! Hostile and careless calls: a table of cases, each with its expected outcome. Every case runs in
//! a world of its own; afterwards, nothing outside of the project and nothing protected may
//! have changed, no secret may have been shown, and no half-written file may be left.

mod boundary;
mod content;
mod names;
mod protected;
mod special;
mod symlinks;

use std::collections::HashSet;

use antiphon_file_tools::Mode;
use serde_json::{Value, json};

use crate::world::{Outcome, SECRET, World};

/// Cases that there are at least: a table that shrinks has lost some.
const CASES_MIN: usize = 240;

fn tables() -> [(&'static str, Vec<Case>); 8] {
    [
        ("boundary", boundary::cases()),
        ("symlinks", symlinks::cases()),
        ("special", special::cases()),
        ("protected", protected::cases()),
        ("names", names::cases()),
        ("reading", content::reading()),
        ("writing", content::writing()),
        ("editing", content::editing()),
    ]
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let cases: Vec<Case> = tables().into_iter().flat_map(|(_, cases)| cases).collect();
    let mut names = HashSet::new();
    let twice = cases.iter().find(|case| !names.insert(case.name));
    assert_eq!(twice.map(|case| case.name), None);
    assert!(cases.len() >= CASES_MIN, "only {} cases", cases.len());
}

/// Runs one of the tables.
#[track_caller]
fn all_come_out_as_expected(name: &str) {
    let table = tables().into_iter().find(|(table, _)| *table == name);
    let (_, cases) = table.unwrap();
    let wrong: Vec<String> = cases.iter().filter_map(Case::judge).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn paths_that_lead_out_are_refused() {
    all_come_out_as_expected("boundary");
}

#[test]
fn symlinks_lead_no_further_than_paths() {
    all_come_out_as_expected("symlinks");
}

#[test]
fn what_is_no_file_is_left_alone() {
    all_come_out_as_expected("special");
}

#[test]
fn what_is_protected_stays_as_it_is() {
    all_come_out_as_expected("protected");
}

#[test]
fn strange_names_are_names() {
    all_come_out_as_expected("names");
}

#[test]
fn strange_contents_are_read_or_described() {
    all_come_out_as_expected("reading");
}

#[test]
fn careless_writing_destroys_nothing() {
    all_come_out_as_expected("writing");
}

#[test]
fn careless_editing_destroys_nothing() {
    all_come_out_as_expected("editing");
}

/// What no outcome is longer than, in bytes.
const OUTCOME_BYTES_MAX: usize = 20_000;

pub(crate) struct Case {
    name: &'static str,
    mode: Mode,
    given: fn(&World),
    /// Calls made before, with any result.
    first: Vec<(&'static str, Value)>,
    call: (&'static str, Value),
    expected: Expected,
    leaves: Vec<(&'static str, Option<Vec<u8>>)>,
}

enum Expected {
    Says(&'static str),
    Fails(&'static str),
    Invalid(&'static str),
}

pub(crate) fn reads(name: &'static str, path: &str) -> Case {
    calls(name, "read", json!({ "path": path }))
}

pub(crate) fn writes(name: &'static str, path: &str, content: &str) -> Case {
    calls(name, "write", json!({ "path": path, "content": content }))
}

pub(crate) fn edits(name: &'static str, path: &str, old: &str, new: &str) -> Case {
    calls(name, "edit", json!({ "path": path, "edits": [{ "old": old, "new": new }] }))
}

pub(crate) fn calls(name: &'static str, tool: &'static str, arguments: Value) -> Case {
    Case {
        name,
        mode: Mode::Workspace,
        given: |_| {},
        first: Vec::new(),
        call: (tool, arguments),
        expected: Expected::Says(""),
        leaves: Vec::new(),
    }
}

impl Case {
    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn given(mut self, given: fn(&World)) -> Self {
        self.given = given;
        self
    }

    /// Reads a file before.
    pub(crate) fn after_reading(mut self, path: &str) -> Self {
        self.first.push(("read", json!({ "path": path })));
        self
    }

    pub(crate) fn says(mut self, part: &'static str) -> Self {
        self.expected = Expected::Says(part);
        self
    }

    pub(crate) fn fails(mut self, part: &'static str) -> Self {
        self.expected = Expected::Fails(part);
        self
    }

    pub(crate) fn refuses(mut self, part: &'static str) -> Self {
        self.expected = Expected::Invalid(part);
        self
    }

    pub(crate) fn leaves(mut self, file: &'static str, bytes: impl AsRef<[u8]>) -> Self {
        self.leaves.push((file, Some(bytes.as_ref().to_vec())));
        self
    }

    pub(crate) fn leaves_nothing_at(mut self, file: &'static str) -> Self {
        self.leaves.push((file, None));
        self
    }

    /// What is wrong with what came of it, if anything.
    fn judge(&self) -> Option<String> {
        let mut world = World::of(self.mode);
        (self.given)(&world);
        world.settle();
        for (tool, arguments) in &self.first {
            world.call(tool, &placed(arguments, &world));
        }
        let outcome = world.call(self.call.0, &placed(&self.call.1, &world));
        world.is_unharmed();
        let wrong = |what: &str| Some(format!("{}: {what}: {outcome:?}", self.name));
        let as_expected = match (&self.expected, &outcome) {
            (Expected::Says(part), Outcome::Said(text))
            | (Expected::Fails(part), Outcome::Failed(text))
            | (Expected::Invalid(part), Outcome::Invalid(text)) => text.contains(part),
            (Expected::Says(_) | Expected::Fails(_) | Expected::Invalid(_), _) => false,
        };
        if !as_expected {
            return wrong("not as expected");
        }
        if format!("{outcome:?}").len() > OUTCOME_BYTES_MAX {
            return Some(format!("{}: says far too much", self.name));
        }
        if format!("{outcome:?}").contains(SECRET) {
            return wrong("shows a secret");
        }
        for (file, expected) in &self.leaves {
            let found = std::fs::read(world.path(file)).ok();
            if found != *expected {
                let found = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                return wrong(&format!("leaves {file} as {found:?}"));
            }
        }
        None
    }
}

/// Arguments with `{root}` and `{outside}` in place.
fn placed(arguments: &Value, world: &World) -> Value {
    let text = arguments.to_string();
    let text = text.replace("{root}", world.root.to_str().unwrap());
    let text = text.replace("{outside}", world.outside.to_str().unwrap());
    serde_json::from_str(&text).unwrap()
}
