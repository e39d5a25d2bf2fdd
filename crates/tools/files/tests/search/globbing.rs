//! What `glob` lists, and in which order.

use serde_json::{Value, json};

use crate::world::Tool::Glob;
use crate::world::Tree;

/// Calls with a pattern and more arguments.
fn glob(tree: &Tree, pattern: &str, more: Value) -> String {
    let mut arguments = more;
    arguments["pattern"] = pattern.into();
    tree.shown(Glob, &arguments)
}

/// The files that are listed, by name.
fn listed(tree: &Tree, pattern: &str, more: Value) -> Vec<String> {
    let text = glob(tree, pattern, more);
    let files = text.lines().take_while(|line| !line.is_empty() && !line.starts_with("No files"));
    let mut files: Vec<String> = files.map(str::to_owned).collect();
    files.sort();
    files
}

fn source() -> Tree {
    let tree = Tree::new();
    tree.file_of("Cargo.toml", 50)
        .file_of("src/lib.rs", 10)
        .file_of("src/deep/er/mod.rs", 40)
        .file_of("src/main.rs", 30)
        .file_of("web/app.ts", 20)
        .file_of("web/app.tsx", 20)
        .file_of("web/.hidden.ts", 60);
    tree
}

#[test]
fn the_newest_come_first_and_then_by_path() {
    let expected = "Cargo.toml\nsrc/deep/er/mod.rs\nsrc/main.rs\nweb/app.ts\nweb/app.tsx\n\
                    src/lib.rs\n\n[6 files, the newest first]";
    assert_eq!(glob(&source(), "**", json!({})), expected);
}

#[test]
fn patterns_mean_what_they_say() {
    let tree = source();
    let list = |pattern| listed(&tree, pattern, json!({}));
    assert_eq!(list("*.rs"), ["src/deep/er/mod.rs", "src/lib.rs", "src/main.rs"]);
    assert_eq!(list("**/*.rs"), ["src/deep/er/mod.rs", "src/lib.rs", "src/main.rs"]);
    assert_eq!(list("src/*.rs"), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(list("src/**/*.rs"), ["src/deep/er/mod.rs", "src/lib.rs", "src/main.rs"]);
    assert_eq!(list("src/"), ["src/deep/er/mod.rs", "src/lib.rs", "src/main.rs"]);
    assert_eq!(list("web/app.{ts,tsx}"), ["web/app.ts", "web/app.tsx"]);
    assert_eq!(list("?argo.[!x]oml"), ["Cargo.toml"]);
    assert_eq!(list("**/er/**"), ["src/deep/er/mod.rs"]);
    assert_eq!(list("./src/lib.rs"), ["src/lib.rs"]);
    assert_eq!(list("SRC/*"), Vec::<String>::new());
}

#[test]
fn patterns_begin_where_the_path_says() {
    let tree = source();
    assert_eq!(listed(&tree, "er/*.rs", json!({ "path": "src/deep" })), ["src/deep/er/mod.rs"]);
    assert_eq!(listed(&tree, "*.rs", json!({ "path": "src" })).len(), 3);
    assert_eq!(listed(&tree, "src/*", json!({ "path": tree.root() })).len(), 2);
}

#[test]
fn hidden_files_are_listed_when_asked_for() {
    let tree = source();
    tree.file(".git/config", "").file(".antiphon/journal.db", "").file("x/.git", "gitdir: ..");
    assert_eq!(listed(&tree, "web/*.ts", json!({})), ["web/app.ts"]);
    assert_eq!(
        listed(&tree, "web/*.ts", json!({ "hidden": true })),
        ["web/.hidden.ts", "web/app.ts"]
    );
    assert_eq!(listed(&tree, "**", json!({ "hidden": true })).len(), 7);
    assert_eq!(listed(&tree, ".*/**", json!({ "hidden": true })), Vec::<String>::new());
}

#[test]
fn what_is_left_out_is_counted() {
    let tree = Tree::new();
    for number in 0..1532_u64 {
        tree.file_of(&format!("{}/{number:04}.txt", number % 5), number);
    }
    let text = glob(&tree, "**", json!({}));
    assert!(text.starts_with("1/1531.txt\n0/1530.txt\n4/1529.txt\n"), "{text}");
    let end = "3/1333.txt\n2/1332.txt\n\n[the first 200 of 1,532 files, the newest first: narrow \
               `pattern` or `path`]";
    assert!(text.ends_with(end), "{text}");
    let all = glob(&tree, "**", json!({ "limit": 2000 }));
    assert!(all.ends_with("0/0000.txt\n\n[1,532 files, the newest first]"), "{all}");
}

#[test]
fn a_list_has_a_size_limit() {
    let tree = Tree::new();
    for number in 0..400 {
        tree.file(&format!("{}{number:03}", "n".repeat(200)), "");
    }
    let text = glob(&tree, "**", json!({ "limit": 2000 }));
    let shown = text.lines().take_while(|line| !line.is_empty()).count();
    assert!((150..=161).contains(&shown), "{shown}");
    assert!(text.contains(&format!("[the first {shown} of 400 files")), "{text}");
}

#[test]
fn nothing_found_says_what_was_left_out() {
    let text = glob(&source(), "*.zig", json!({ "path": "src" }));
    let expected = "No files match in `src`. Ignored and hidden files are left out: name an ignored \
                    folder itself as `path`, or pass `hidden: true`.";
    assert_eq!(text, expected);
}
