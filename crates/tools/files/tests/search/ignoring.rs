//! Which files rules hide.

use std::collections::BTreeSet;
use std::fs;

use ignore::WalkBuilder;
use proptest::prelude::*;
use serde_json::json;

use crate::world::Tool::{Glob, Grep};
use crate::world::{Outcome, Tree, call_with};

/// All files that are listed, in order of their names.
fn listed(tree: &Tree, arguments: serde_json::Value) -> Vec<String> {
    let mut arguments = arguments;
    arguments["pattern"] = "**".into();
    arguments["limit"] = 2000.into();
    let text = tree.shown(Glob, &arguments);
    let files = text.lines().take_while(|line| !line.is_empty() && !line.starts_with("No files"));
    files.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn rules_hold_without_a_repository() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n/build/\n").file("a.log", "").file("a.txt", "");
    tree.file("build/x", "").file("sub/build/x", "").file("sub/b.log", "");
    assert_eq!(listed(&tree, json!({})), ["a.txt", "sub/build/x"]);
}

#[test]
fn a_later_or_nearer_rule_wins() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n!keep.log\n").file("a.log", "").file("keep.log", "");
    tree.file("sub/.gitignore", "!b.log\nkeep.log\n")
        .file("sub/b.log", "")
        .file("sub/keep.log", "");
    tree.file("sub/a.log", "");
    assert_eq!(listed(&tree, json!({})), ["keep.log", "sub/b.log"]);
}

#[test]
fn what_is_in_an_ignored_folder_cannot_be_taken_back() {
    let tree = Tree::new();
    tree.file(".gitignore", "target/\n!target/keep\n").file("target/keep", "").file("a", "");
    assert_eq!(listed(&tree, json!({})), ["a"]);
}

#[test]
fn an_ignore_file_comes_before_gits() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.gen\n").file(".ignore", "!*.gen\n*.md\n");
    tree.file("sub/.gitignore", "*.gen\n").file("sub/a.gen", "").file("b.md", "");
    assert_eq!(listed(&tree, json!({})), ["sub/a.gen"]);
}

#[test]
fn the_repositorys_own_list_counts() {
    let tree = Tree::new();
    tree.file(".git/info/exclude", "*.private\n").file("a.private", "").file("a.txt", "");
    assert_eq!(listed(&tree, json!({})), ["a.txt"]);
}

#[test]
fn another_repository_within_has_its_own_rules() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n").file(".ignore", "*.tmp\n").file("a.log", "");
    tree.file("vendor/lib/.git/HEAD", "").file("vendor/lib/.gitignore", "*.o\n");
    tree.file("vendor/lib/b.log", "").file("vendor/lib/b.o", "").file("vendor/lib/b.tmp", "");
    assert_eq!(listed(&tree, json!({})), ["vendor/lib/b.log"]);
}

#[test]
fn hidden_files_can_be_wanted_by_a_rule() {
    let tree = Tree::new();
    tree.file(".gitignore", "!.github\n").file(".github/ci.yml", "").file(".env", "");
    assert_eq!(listed(&tree, json!({})), [".github/ci.yml"]);
    assert_eq!(listed(&tree, json!({ "hidden": true })), [".env", ".github/ci.yml", ".gitignore"]);
}

#[test]
fn rules_from_above_the_path_hold_in_it() {
    let tree = Tree::new();
    tree.file(".gitignore", "*.log\n/a/b/c.txt\n").file("a/.ignore", "d.txt\n");
    tree.file("a/b/c.txt", "").file("a/b/d.txt", "").file("a/b/e.txt", "").file("a/b/e.log", "");
    assert_eq!(listed(&tree, json!({ "path": "a/b" })), ["a/b/e.txt"]);
}

#[test]
fn a_folder_that_is_named_is_searched_though_it_is_ignored() {
    let tree = Tree::new();
    tree.file(".gitignore", "node_modules\n*.min.js\n");
    tree.file("node_modules/lib/index.js", "needle\n")
        .file("node_modules/lib/x.min.js", "needle\n");
    assert_eq!(listed(&tree, json!({})), Vec::<String>::new());
    let inside = ["node_modules/lib/index.js"];
    assert_eq!(listed(&tree, json!({ "path": "node_modules" })), inside);
    assert_eq!(listed(&tree, json!({ "path": "node_modules/lib" })), inside);
    let named =
        json!({ "pattern": "needle", "path": "node_modules/lib/x.min.js", "mode": "files" });
    assert!(tree.shown(Grep, &named).starts_with("node_modules/lib/x.min.js\n"));
}

#[test]
fn above_the_working_folder_only_its_repository_has_a_say() {
    let tree = Tree::new();
    let above = tree.root().parent().unwrap().to_owned();
    tree.file("a.log", "").file("a.txt", "").file("sub/b.txt", "");
    fs::write(above.join(".gitignore"), "*.log\n/root/sub/b.txt\n").unwrap();
    assert_eq!(listed(&tree, json!({})), ["a.log", "a.txt", "sub/b.txt"]);
    fs::create_dir(above.join(".git")).unwrap();
    assert_eq!(listed(&tree, json!({})), ["a.txt"]);
    assert_eq!(listed(&tree, json!({ "path": "sub" })), Vec::<String>::new());
    fs::create_dir(tree.root().join(".git")).unwrap();
    assert_eq!(listed(&tree, json!({})), ["a.log", "a.txt", "sub/b.txt"]);
}

#[test]
fn a_rule_file_is_read_up_to_a_limit_and_no_half_rule_counts() {
    let tree = Tree::new();
    let mut rules = "*.log\n".to_owned();
    rules.push_str(&"# nothing\n".repeat(8_000));
    let start = rules[..64 * 1024].rfind('\n').unwrap() + 1;
    rules.replace_range(start.., &format!("{}{}", "*".repeat(64 * 1024 - start), ".never\n*\n"));
    tree.file(".gitignore", rules).file("a.log", "").file("a.txt", "");
    assert_eq!(listed(&tree, json!({})), ["a.txt"]);
}

#[test]
fn rules_that_would_fill_the_memory_are_not_read() {
    let tree = Tree::new();
    let rules = format!("{}*.log\n", "# nothing\n".repeat(6000));
    let mut folder = String::new();
    for _ in 0..8 {
        folder.push_str("deeper/");
        tree.file(&format!("{folder}.gitignore"), &rules);
    }
    tree.file(&format!("{folder}a.txt"), "needle\n");
    let text = tree.shown(Grep, &json!({ "pattern": "needle" }));
    let end = "a.txt\n1: needle\n\n[1 match in 1 file]\n\
               [ignore files are too long: some rules were not read]";
    assert!(text.ends_with(end), "{text}");
}

/// One of a few names, so that rules and files meet.
fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "ab", ".c", "a.o", "b.o", "d"])
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|parts| parts.join("/"))
}

fn rule() -> impl Strategy<Value = String> {
    let pattern = prop_oneof![
        path(),
        prop::sample::select(vec!["*.o", "*", "a*", "**/b", "a/**", "?", "[ab]", "**/d/*"])
            .prop_map(str::to_owned),
    ];
    let sign = prop::sample::select(vec!["", "", "!", "/", "!/"]);
    (sign, pattern, prop::bool::ANY).prop_map(|(sign, pattern, folder)| {
        format!("{sign}{pattern}{}\n", if folder { "/" } else { "" })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Ripgrep's own walk, which reads rule files in its own way, sees the same files.
    #[test]
    fn the_same_files_are_seen_as_ripgrep_sees(
        files in prop::collection::vec(path(), 1..12),
        rule_files in prop::collection::vec(
            (prop::option::of(path()), prop::sample::select(vec![".gitignore", ".ignore"]),
             prop::collection::vec(rule(), 1..4)),
            0..4,
        ),
        hidden in prop::bool::ANY,
    ) {
        let tree = Tree::new();
        for file in &files {
            // Of a file and a folder of the same name, the first is made.
            let path = tree.root().join(file);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
                fs::write(path, "").unwrap();
            }
        }
        for (folder, name, rules) in rule_files {
            let folder = tree.root().join(folder.unwrap_or_default());
            if folder.is_dir() {
                fs::write(folder.join(name), rules.concat()).unwrap();
            }
        }
        let mut walk = WalkBuilder::new(tree.root());
        walk.require_git(false).git_global(false).parents(false).hidden(!hidden);
        let seen = walk.build().map(Result::unwrap).filter(|entry| entry.path().is_file());
        let expected: BTreeSet<String> = seen
            .map(|entry| entry.path().strip_prefix(tree.root()).unwrap().display().to_string())
            .collect();
        let shown = listed(&tree, json!({ "hidden": hidden }));
        prop_assert_eq!(shown, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn hidden_paths_are_neither_entered_nor_shown() {
    let tree = Tree::new();
    tree.file("plain", "needle")
        .file("deep/.aws/credentials", "needle")
        .file("deep/token", "needle");
    tree.file("deep/tokens", "needle");
    let root = tree.root().canonicalize().unwrap();
    let config = || antiphon_file_tools::WorkspaceConfig {
        hidden: vec![root.join("deep/.aws"), root.join("deep/token")],
        ..antiphon_file_tools::WorkspaceConfig::of(&root, antiphon_file_tools::Mode::Workspace)
    };
    for path in [".", "deep"] {
        for (tool, arguments) in [
            (Grep, json!({ "pattern": "needle", "hidden": true, "path": path })),
            (Glob, json!({ "pattern": "**", "hidden": true, "path": path })),
        ] {
            let Outcome::Shows(text) =
                call_with(config(), tool, &arguments, antiphon_core::Cancel::never())
            else {
                panic!("{tool:?} {path}");
            };
            assert!(text.contains("tokens"), "{text}");
            assert!(!text.contains("credentials") && !text.contains("deep/token\n"), "{text}");
        }
    }
    let inside = json!({ "pattern": "needle", "path": "deep/.aws" });
    let refused = call_with(config(), Grep, &inside, antiphon_core::Cancel::never());
    assert!(matches!(refused, Outcome::Fails(_)), "{refused:?}");
}
