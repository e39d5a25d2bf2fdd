//! Files that are damaged, of another program, or of another version.

use std::fs::{self, OpenOptions};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::Path;

use antiphon_core::port::{JournalError, JournalLog, Read, TaskIndex, TaskQuery, TaskSelector};
use antiphon_core::{Position, Seq};
use antiphon_sqlite::{OpenError, SqliteJournal, SyncPolicy};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::world::{add, all, creation, open, task};

#[test]
fn another_kind_of_file_is_left_as_it_is() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let text = "Dear diary, ".repeat(1000);
    fs::write(&path, &text).expect("a file");
    let error = SqliteJournal::open(&path, SyncPolicy::Full).expect_err("it is no journal");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).expect("a file"), text);
}

/// Each is a database, and none is a journal.
#[test]
fn a_database_of_another_program_is_not_changed() {
    let cases = [
        "CREATE TABLE notes (text)",
        "CREATE TABLE events (x); CREATE TABLE tasks (x); CREATE TABLE keys (x)",
        "CREATE TABLE notes (text); PRAGMA user_version = 1",
        "CREATE TABLE events (x); CREATE TABLE tasks (x); PRAGMA user_version = 1",
        "CREATE TABLE notes (text); PRAGMA user_version = 2",
        "PRAGMA application_id = 1234; CREATE TABLE notes (text)",
        "PRAGMA application_id = 1234; PRAGMA user_version = 99",
    ];
    for statements in cases {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("journal.db");
        let other = Connection::open(&path).expect("a database");
        other.execute_batch(statements).expect("statements");
        drop(other);
        let before = fs::read(&path).expect("a file");
        for error in [
            SqliteJournal::open(&path, SyncPolicy::Full).expect_err("it is no journal"),
            SqliteJournal::open_read_only(&path).expect_err("it is no journal"),
        ] {
            assert!(matches!(error, OpenError::Damaged { .. }), "{statements}: {error:?}");
            assert!(error.to_string().ends_with("not a journal"), "{error}");
        }
        assert_eq!(fs::read(&path).expect("a file"), before, "{statements}");
        assert!(!folder.path().join("journal.db-wal").exists(), "{statements}");
    }
}

/// A journal whose creation was killed is created again.
#[tokio::test]
async fn a_file_that_was_left_half_made_is_put_right() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let other = Connection::open(&path).expect("a database");
    other.pragma_update(None, "user_version", 0).expect("a header");
    other.execute_batch("BEGIN IMMEDIATE; CREATE TABLE half (x)").expect("half a step");
    other.cache_flush().expect("pages on the disk");
    // As a kill leaves it: pages that were never committed, and the rollback journal.
    let left = TempDir::new().expect("a folder");
    let path = left.path().join("journal.db");
    for name in ["journal.db", "journal.db-journal"] {
        fs::copy(folder.path().join(name), left.path().join(name)).expect("a copy");
    }
    drop(other);
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    assert_eq!(journal.verify().await, Ok(()));
}

#[test]
fn a_journal_of_a_later_version_is_left_as_it_is() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(open(&path));
    // The version is a number in the header of the file.
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("a header");
    let before = fs::read(&path).expect("a file");
    let error = SqliteJournal::open(&path, SyncPolicy::Full).expect_err("it is of a later version");
    assert!(matches!(error, OpenError::Later { found: 99, known: 10, .. }), "{error:?}");
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[tokio::test]
async fn a_damaged_page_is_found_and_nothing_is_made_up() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    for seq in 2..400 {
        add(&journal, 1, Seq(seq), &"x".repeat(200)).await.expect("an append");
    }
    assert_eq!(journal.verify().await, Ok(()));
    drop(journal);
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    let pages = file.metadata().expect("a file").len() / 4096;
    for page in pages / 2..pages / 2 + 4 {
        file.write_all_at(&[0xAA; 4096], page * 4096).expect("a page");
    }
    let journal = open(&path);
    assert!(matches!(journal.verify().await, Err(JournalError::Corrupt { .. })));
    let read = Read { task_id: None, after: Position(0), limit: NonZeroUsize::MAX };
    let error = journal.read(read).await.expect_err("it is damaged");
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error:?}");
}

/// Runs statements on the file of a closed journal.
fn tamper(path: &Path, statements: &str) {
    let connection = Connection::open(path).expect("a database");
    connection.execute_batch(statements).expect("statements");
}

#[tokio::test]
async fn an_event_of_a_later_version_is_refused_and_its_task_is_still_listed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    journal.append(creation(2)).await.expect("an append");
    drop(journal);
    tamper(&path, "UPDATE events SET v = 7 WHERE position = 2");
    let journal = open(&path);
    let read = |task_id| Read { task_id, after: Position(0), limit: NonZeroUsize::MAX };
    for task_id in [None, Some(task(1))] {
        let error = journal.read(read(task_id)).await.expect_err("it is of a later version");
        assert_eq!(
            error.to_string(),
            "the journal is damaged at position 2: event version 7 is newer than this program \
             knows (1)"
        );
    }
    assert_eq!(journal.read(read(Some(task(2)))).await.expect("a page").events.len(), 2);
    let query = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
    assert_eq!(journal.tasks(query).await.expect("tasks").len(), 2);
}

/// Concurrent writers of other tasks are not affected.
#[tokio::test]
async fn a_task_that_makes_no_sense_is_refused_alone() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    for number in 1..=8 {
        journal.append(creation(number)).await.expect("an append");
    }
    drop(journal);
    tamper(&path, "UPDATE tasks SET status = 'asleep' WHERE id = 3");
    let journal = open(&path);
    let adding = (1..=8).map(|number| add(&journal, number, Seq(2), "more"));
    let answers = futures_util::future::join_all(adding).await;
    for (number, answer) in (1..).zip(answers) {
        match (number, answer) {
            (3, Err(JournalError::Corrupt { reason, .. })) => {
                assert!(reason.contains("asleep"), "{reason}");
            }
            (3, other) => panic!("{other:?}"),
            (_, answer) => assert_eq!(answer.expect("an append").seq, Seq(3)),
        }
    }
    assert_eq!(all(&journal).await.len(), 16 + 7);
}
