//! Trees that change while they are searched, and that the kernel makes up.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use antiphon_core::Cancel;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use super::needle;
use crate::world::Tool::{Glob, Grep};
use crate::world::{Outcome, Tree, call_in};

#[test]
fn a_folder_that_becomes_a_link_leads_nowhere() {
    let tree = Tree::new();
    for number in 0..30 {
        tree.file(&format!("folder/{number}/secret.txt"), "needle inside\n");
        fs::create_dir(tree.outside().join(number.to_string())).unwrap();
        let secret = tree.outside().join(format!("{number}/secret.txt"));
        fs::write(secret, "needle outside\n").unwrap();
    }
    tree.link("link", tree.outside());
    let (folder, link) = (tree.root().join("folder"), tree.root().join("link"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let shown: Vec<String> = (0..100).map(|_| tree.shown(Grep, &needle())).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(shown.iter().any(|text| text.contains("needle inside")));
        assert!(!shown.iter().any(|text| text.contains("needle outside")));
    });
}

#[test]
fn files_that_come_and_go_are_no_trouble() {
    let tree = Tree::new();
    tree.file("a.txt", "needle\n");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                tree.file("b/c/d.txt", "hay\n");
                fs::remove_dir_all(tree.root().join("b")).unwrap();
            }
        });
        let shown: Vec<String> = (0..100).map(|_| tree.shown(Grep, &needle())).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(shown.iter().all(|text| text == super::ONLY_A), "{shown:#?}");
    });
}

#[test]
fn what_the_kernel_makes_up_is_not_entered() {
    for (tool, pattern) in [(Grep, "."), (Glob, "proc/**")] {
        let arguments = json!({ "pattern": pattern, "glob": "proc/**" });
        let arguments = match tool {
            Grep => arguments,
            Glob => json!({ "pattern": pattern }),
        };
        let outcome = call_in(Path::new("/"), tool, &arguments, Cancel::never());
        let Outcome::Shows(text) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(text.starts_with("No files"), "{text}");
        assert!(text.ends_with("[not searched: proc (made up by the kernel)]"), "{text}");
    }
}
