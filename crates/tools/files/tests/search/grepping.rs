//! What `grep` finds, and how it shows it.

use serde_json::{Value, json};

use crate::world::Tool::Grep;
use crate::world::{Outcome, Tree};

/// Calls with a pattern and more arguments.
fn grep(tree: &Tree, pattern: &str, more: Value) -> String {
    let mut arguments = more;
    arguments["pattern"] = pattern.into();
    tree.shown(Grep, &arguments)
}

fn source() -> Tree {
    let tree = Tree::new();
    tree.file("src/main.rs", "fn main() {\n    run();\n}\n\nfn run() {}\n")
        .file("src/lib.rs", "//! Runs.\npub fn Run() {}\n")
        .file("notes.md", "Run it.\n");
    tree
}

#[test]
fn lines_are_grouped_by_file_in_the_order_of_paths() {
    let expected = "notes.md\n1: Run it.\n\n\
                    src/lib.rs\n1: //! Runs.\n2: pub fn Run() {}\n\n\
                    src/main.rs\n2:     run();\n5: fn run() {}\n\n\
                    [5 matches in 3 files]";
    assert_eq!(grep(&source(), "run", json!({})), expected);
}

#[test]
fn case_counts_as_asked() {
    let tree = source();
    let counted = |pattern, case: &str| {
        let text = grep(&tree, pattern, json!({ "case": case, "mode": "files" }));
        text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(counted("run", "smart"), ["notes.md", "src/lib.rs", "src/main.rs"]);
    assert_eq!(counted("Run", "smart"), ["notes.md", "src/lib.rs"]);
    assert_eq!(counted("run", "sensitive"), ["src/main.rs"]);
    assert_eq!(counted("RUN", "insensitive"), ["notes.md", "src/lib.rs", "src/main.rs"]);
}

#[test]
fn text_is_taken_literally_when_asked() {
    let text = grep(&source(), "run();", json!({ "literal": true }));
    assert_eq!(text, "src/main.rs\n2:     run();\n\n[1 match in 1 file]");
    let text = grep(&source(), "(?=x)", json!({ "literal": true }));
    assert_eq!(text, "No matches in `.` (3 files searched).");
}

#[test]
fn matches_are_counted_and_files_named() {
    let tree = source();
    let counts = "notes.md: 1\nsrc/lib.rs: 2\nsrc/main.rs: 2\n\n[5 matches in 3 files]";
    assert_eq!(grep(&tree, "run", json!({ "mode": "count" })), counts);
    let files = "notes.md\nsrc/lib.rs\nsrc/main.rs\n\n[3 files with a match]";
    assert_eq!(grep(&tree, "run", json!({ "mode": "files" })), files);
    tree.file("many.txt", "run\n".repeat(12_345));
    let counts = grep(&tree, "run", json!({ "mode": "count", "glob": "many*" }));
    assert_eq!(counts, "many.txt: 12,345\n\n[12,345 matches in 1 file]");
}

#[test]
fn a_path_narrows_to_a_folder_or_a_file() {
    let tree = source();
    let in_folder = "src/lib.rs\n1: //! Runs.\n2: pub fn Run() {}\n\n[2 matches in 1 file]";
    assert_eq!(grep(&tree, "Run", json!({ "path": "src" })), in_folder);
    assert_eq!(grep(&tree, "Run", json!({ "path": "./src/" })), in_folder);
    assert_eq!(grep(&tree, "Run", json!({ "path": tree.root().join("src") })), in_folder);
    assert_eq!(grep(&tree, "Run", json!({ "path": "src/lib.rs" })), in_folder);
    let nothing = grep(&tree, "Run", json!({ "path": "src/main.rs" }));
    assert_eq!(nothing, "No matches in `src/main.rs` (1 file searched).");
}

#[test]
fn globs_and_types_narrow_to_files() {
    let tree = source();
    let files = |more: Value| {
        let mut more = more;
        more["mode"] = "files".into();
        let text = grep(&tree, "run", more);
        text.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(json!({ "glob": "*.md" })), ["notes.md"]);
    assert_eq!(files(json!({ "glob": "src/*.rs" })), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(files(json!({ "glob": "{lib,main}.rs" })), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(files(json!({ "glob": ["*.md", "lib.*"] })), ["notes.md", "src/lib.rs"]);
    assert_eq!(files(json!({ "glob": ["*.rs", "!main.*"] })), ["src/lib.rs"]);
    assert_eq!(files(json!({ "glob": "!src/" })), ["notes.md"]);
    assert_eq!(files(json!({ "path": "src", "glob": "*.rs" })), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(files(json!({ "type": "rust" })), ["src/lib.rs", "src/main.rs"]);
    assert_eq!(files(json!({ "type": "md" })), ["notes.md"]);
    assert_eq!(files(json!({ "type": "rust", "glob": "m*" })), ["src/main.rs"]);
}

#[test]
fn lines_around_a_match_are_shown_once() {
    let tree = Tree::new();
    tree.file("a.txt", "1\n2 x\n3\n4 x\n5\n6\n7\n8\n9 x\n");
    let expected = "a.txt\n1- 1\n2: 2 x\n3- 3\n4: 4 x\n5- 5\n--\n8- 8\n9: 9 x\n\n\
                    [3 matches in 1 file]";
    assert_eq!(grep(&tree, "x", json!({ "context": 1 })), expected);
    let first = "a.txt\n1- 1\n2: 2 x\n3- 3\n\n[the first 1 match in 1 file; there are more: narrow \
                 `pattern`, `path` or `glob`, or raise `limit` (1,000 at most)]";
    assert_eq!(grep(&tree, "x", json!({ "context": 1, "limit": 1 })), first);
    let two = grep(&tree, "x", json!({ "context": 1, "limit": 2 }));
    assert!(two.starts_with("a.txt\n1- 1\n2: 2 x\n3- 3\n4: 4 x\n5- 5\n\n[the first 2"), "{two}");
}

#[test]
fn a_match_can_go_over_several_lines() {
    let tree = Tree::new();
    tree.file("a.txt", "begin\n  middle\r\nend\nbegin end\n");
    let pattern = r"begin\s+middle\s+end";
    assert_eq!(grep(&tree, pattern, json!({})), "No matches in `.` (1 file searched).");
    let expected = "a.txt\n1: begin\n2:   middle\n3: end\n\n[1 match in 1 file]";
    assert_eq!(grep(&tree, pattern, json!({ "multiline": true })), expected);
    assert_eq!(
        grep(&tree, "(?s)begin.*?end", json!({ "multiline": true, "limit": 1 })).lines().nth(3),
        Some("3: end")
    );
    tree.file("b.txt", format!("begin\n{}end\n", "x\n".repeat(100)));
    let long = grep(&tree, "(?s)begin.*end", json!({ "multiline": true, "path": "b.txt" }));
    assert!(long.contains("\n50: x\n51: … 52 more lines of this match\n\n[1 match"), "{long}");
}

#[test]
fn a_long_line_is_cut_around_the_match() {
    let tree = Tree::new();
    tree.file("a.js", format!("{}needle{}\n", "x".repeat(1000), "y".repeat(1000)));
    let expected =
        format!("a.js\n1: …{}needle{}…\n\n[1 match in 1 file]", "x".repeat(100), "y".repeat(394));
    assert_eq!(grep(&tree, "needle", json!({})), expected);
}

#[test]
fn what_is_too_much_is_cut_and_said() {
    let tree = Tree::new();
    for number in 0..30 {
        tree.file(&format!("{number:02}.txt"), "needle\n".repeat(4));
    }
    let exactly = grep(&tree, "needle", json!({ "limit": 120 }));
    assert!(exactly.ends_with("4: needle\n\n[120 matches in 30 files]"), "{exactly}");
    let most = grep(&tree, "needle", json!({ "limit": 119 }));
    assert!(most.contains("29.txt\n1: needle\n2: needle\n3: needle\n\n[the first 119 matches in 30 files; there are more"), "{most}");
    let default = grep(&tree, "needle", json!({}));
    assert!(default.contains("24.txt\n1: needle\n2: needle\n3: needle\n4: needle\n\n[the first 100 matches in 25 files;"), "{default}");
    let files = grep(&tree, "needle", json!({ "limit": 2, "mode": "files" }));
    assert!(
        files.starts_with("00.txt\n01.txt\n\n[the first 2 files with a match; there are more"),
        "{files}"
    );
}

#[test]
fn a_result_has_a_size_limit() {
    let tree = Tree::new();
    for number in 0..10 {
        tree.file(&format!("{number}.txt"), format!("needle {}\n", "z".repeat(480)).repeat(20));
    }
    let text = grep(&tree, "needle", json!({ "limit": 1000 }));
    let shown = text.matches("needle").count();
    assert!((60..=67).contains(&shown), "{shown} matches");
    let last = text.lines().last().unwrap();
    let expected = format!(
        "[the first {shown} matches in 4 files, cut because it is long; there are more: narrow `pattern`, `path` or `glob`]"
    );
    assert_eq!(last, expected);
    // What is around the first match does not push it out.
    let wide = format!("{}needle\n", format!("{}\n", "\u{e0041}".repeat(500)).repeat(20));
    tree.file("0.txt", wide.repeat(2));
    let text = grep(&tree, "needle", json!({ "context": 20, "path": "0.txt" }));
    assert!(text.starts_with("0.txt\n21: needle\n"), "{}", &text[..200]);
}

#[test]
fn the_same_search_has_the_same_result_each_time() {
    let tree = Tree::new();
    for folder in 0..40 {
        for file in 0..10 {
            let path = format!("f{}/{}/{file}.txt", folder % 7, folder);
            tree.file(&path, "needle\n".repeat((folder + file) % 4));
        }
    }
    for arguments in [json!({}), json!({ "limit": 7 }), json!({ "mode": "count", "limit": 30 })] {
        let first = grep(&tree, "needle", arguments.clone());
        for _ in 0..20 {
            assert_eq!(grep(&tree, "needle", arguments.clone()), first);
        }
    }
}

#[test]
fn the_definition_is_enough_to_call_the_tool() {
    use antiphon_toolbox::ToolHandler as _;
    let config = antiphon_file_tools::WorkspaceConfig::of(
        source().root(),
        antiphon_file_tools::Mode::ReadOnly,
    );
    let tree = source();
    let config = antiphon_file_tools::WorkspaceConfig { roots: vec![tree.root()], ..config };
    let workspace = std::sync::Arc::new(antiphon_file_tools::Workspace::open(config).unwrap());
    let schema: Value =
        antiphon_file_tools::GrepTool::new(workspace).definition().parameters.to().unwrap();
    assert_eq!(schema["required"], json!(["pattern"]));
    // One that a model makes up is refused by its name.
    assert_eq!(schema.get("additionalProperties"), None);
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    let expected = [
        "pattern",
        "literal",
        "path",
        "glob",
        "type",
        "case",
        "context",
        "multiline",
        "mode",
        "limit",
        "hidden",
    ];
    assert_eq!(names, expected);
    let everything = json!({
        "pattern": "run", "literal": false, "path": ".", "glob": ["*"], "type": "rust",
        "case": "smart", "context": 0, "multiline": false, "mode": "count", "limit": 1, "hidden": false,
    });
    assert!(matches!(tree.call(Grep, &everything), Outcome::Shows(_)));
}
