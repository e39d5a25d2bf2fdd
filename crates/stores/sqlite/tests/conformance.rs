//! The contract of the journal, on SQLite.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use antiphon_conformance::journal;
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use rusqlite::Connection;
use tempfile::TempDir;

fn open(folder: &TempDir) -> SqliteJournal {
    SqliteJournal::open(&folder.path().join("journal.db"), SyncPolicy::Normal).expect("a journal")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_every_promise_of_the_port() {
    // Kept to the end: a journal does not own its folder.
    let folders = std::sync::Mutex::new(Vec::new());
    let fresh = async || {
        let folder = TempDir::new().expect("a folder");
        let journal = open(&folder);
        folders.lock().expect("no panic").push(folder);
        journal
    };
    journal::check(fresh).await.unwrap();
}

/// Indexes each task when it is created. A journal does that later, many at a time.
const INDEX_AT_ONCE: &str = "
    CREATE TRIGGER at_once AFTER INSERT ON tasks BEGIN
        INSERT INTO sessions VALUES (NEW.session, NEW.id, NEW.id, 1)
            ON CONFLICT (session_id) DO UPDATE SET last_task = excluded.last_task, tasks = tasks + 1;
        UPDATE tasks SET indexed = 1 WHERE id = NEW.id;
    END";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_keeps_every_promise_with_tasks_that_are_indexed() {
    let folders = std::sync::Mutex::new(Vec::new());
    let fresh = async || {
        let folder = TempDir::new().expect("a folder");
        let journal = open(&folder);
        let other = Connection::open(folder.path().join("journal.db")).expect("a database");
        other.execute_batch(INDEX_AT_ONCE).expect("a trigger");
        folders.lock().expect("no panic").push(folder);
        journal
    };
    journal::check(fresh).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_loses_nothing_when_it_is_opened_again() {
    let folder = || TempDir::new().expect("a folder");
    journal::durable::check(folder, async |folder: &TempDir| open(folder)).await.unwrap();
}
