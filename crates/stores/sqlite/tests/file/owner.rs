//! One owner at a time.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use antiphon_sqlite::{OpenError, SqliteJournal, SyncPolicy};
use tempfile::TempDir;

use crate::world::{all, creation, open};
use antiphon_core::port::JournalLog;

#[tokio::test]
async fn a_second_owner_is_told_who_has_it() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let first = open(&path);
    let error = SqliteJournal::open(&path, SyncPolicy::Full).expect_err("it is taken");
    let pid = std::process::id();
    assert_eq!(
        error.to_string(),
        format!(
            "{} is in use by process {pid}: stop it, or use it through its interfaces",
            path.display()
        )
    );
    first.append(creation(1)).await.expect("the first still writes");
    drop(first);
    assert_eq!(all(&open(&path)).await.len(), 2);
}

/// As after a kill, when the old owner has not quite ended.
#[tokio::test]
async fn a_lock_that_is_about_to_be_let_go_is_waited_for() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let first = open(&path);
    first.append(creation(1)).await.expect("an append");
    let (claiming, claimed) = std::sync::mpsc::sync_channel::<()>(0);
    let leaving = std::thread::spawn(move || {
        claimed.recv().expect("a claim");
        // Time for the other process to find the lock taken.
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(first);
    });
    claiming.send(()).expect("an owner");
    let second = SqliteJournal::open(&path, SyncPolicy::Full).expect("it was waited for");
    leaving.join().expect("no panic");
    assert_eq!(all(&second).await.len(), 2);
}

#[test]
fn its_files_are_for_the_owner_alone() {
    let folder = TempDir::new().expect("a folder");
    let _journal = open(&folder.path().join("journal.db"));
    let mut names = Vec::new();
    for file in fs::read_dir(folder.path()).expect("a folder") {
        let file = file.expect("a file");
        let mode = file.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file:?}");
        names.push(file.file_name());
    }
    names.sort();
    assert_eq!(names, ["journal.db", "journal.db-shm", "journal.db-wal", "journal.db.lock"]);
}

#[test]
fn what_cannot_be_a_journal_is_said_to_be_none() {
    let folder = TempDir::new().expect("a folder");
    let cases = [
        (folder.path().join("no/such/journal.db"), "No such file"),
        (folder.path().to_owned(), "it is not a file"),
        ("/proc/journal.db".into(), "cannot open"),
    ];
    for (path, expected) in cases {
        let error = SqliteJournal::open(&path, SyncPolicy::Full).expect_err("it is none");
        assert!(matches!(error, OpenError::Unusable { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}
