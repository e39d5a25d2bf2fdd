//! Searches that are stopped.

use std::fs;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use antiphon_core::Cancel;
use serde_json::json;

use crate::world::Tool::{Glob, Grep};
use crate::world::{Outcome, Tree};

/// Fires as soon as the call waits for something.
fn soon() -> Cancel {
    let mut waited = false;
    Cancel::when(poll_fn(move |cx| {
        if waited {
            return Poll::Ready(());
        }
        waited = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }))
}

/// Waits until no thread of a search is left in this process.
fn threads_are_gone() {
    let is_searching = || {
        let mut threads = fs::read_dir("/proc/self/task").unwrap();
        threads.any(|thread| {
            let name = fs::read_to_string(thread.unwrap().path().join("comm"));
            name.is_ok_and(|name| name.trim() == "search-walk")
        })
    };
    // The system takes a moment to forget a thread that has ended.
    let started = Instant::now();
    while is_searching() {
        assert!(started.elapsed() < Duration::from_secs(5), "a thread is left");
        std::thread::yield_now();
    }
}

#[test]
fn a_search_of_a_large_tree_is_canceled_in_the_middle() {
    let tree = Tree::new();
    for number in 0..600 {
        tree.file(&format!("{:02}/{number:04}.txt", number % 60), "hay\n".repeat(4000));
    }
    let started = Instant::now();
    let arguments = json!({ "pattern": r"\w+needle\w+" });
    assert!(matches!(tree.call(Grep, &arguments), Outcome::Shows(_)));
    let whole = started.elapsed();

    let started = Instant::now();
    assert_eq!(tree.call_until(Grep, &arguments, soon()), Outcome::Canceled);
    let canceled = started.elapsed();
    assert!(canceled < whole / 2, "{canceled:?} of {whole:?}");
    threads_are_gone();
}

#[test]
fn a_search_of_a_large_file_is_canceled_in_the_middle() {
    let tree = Tree::new();
    tree.file("large.txt", "hay and more hay\n".repeat(800_000));
    let arguments = json!({ "pattern": r"\w+needle\w+", "path": "large.txt" });
    let started = Instant::now();
    assert!(matches!(tree.call(Grep, &arguments), Outcome::Shows(_)));
    let whole = started.elapsed();

    let started = Instant::now();
    assert_eq!(tree.call_until(Grep, &arguments, soon()), Outcome::Canceled);
    let canceled = started.elapsed();
    assert!(canceled < whole / 2, "{canceled:?} of {whole:?}");
}

#[test]
fn a_list_of_a_large_tree_is_canceled_in_the_middle() {
    let tree = Tree::new();
    for number in 0..1500 {
        tree.file(&format!("{number:04}/x.txt"), "");
    }
    // On a busy machine it may be done before the stop.
    let mut calls = (0..10).map(|_| tree.call_until(Glob, &json!({ "pattern": "**" }), soon()));
    assert!(calls.any(|outcome| outcome == Outcome::Canceled));
    threads_are_gone();
}

#[test]
fn nothing_more_is_searched_once_there_is_enough() {
    let tree = Tree::new();
    for number in 0..50 {
        tree.file(&format!("a/{number}.txt"), "needle\n".repeat(10));
    }
    for number in 0..20 {
        tree.file(&format!("z/{number}.txt"), "hay and more hay\n".repeat(40_000));
    }
    let search = |arguments| {
        let started = Instant::now();
        let shown = tree.shown(Grep, &arguments);
        (started.elapsed(), shown)
    };
    let (whole, _) = search(json!({ "pattern": "needle", "limit": 1000 }));
    let (enough, shown) = search(json!({ "pattern": "needle", "limit": 10 }));
    assert!(shown.contains("[the first 10 matches"), "{shown}");
    assert!(enough < whole / 2, "{enough:?} of {whole:?}");
}
