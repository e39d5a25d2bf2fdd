//! Files that are no whole journal are refused before anything is written, with a reason.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use antiphon_core::Seq;
use antiphon_core::port::JournalLog;
use antiphon_sqlite::{OpenError, SqliteJournal, SyncPolicy};
use tempfile::TempDir;

use crate::world::{add, all, creation, open};

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("journal.db-wal")
}

/// Files as a kill leaves them: copied while the journal is open.
async fn killed(events: u64, with_log: bool) -> (TempDir, PathBuf) {
    let (folder, left) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let path = folder.path().join("journal.db");
    let mut journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    for seq in 2..events {
        add(&journal, 1, Seq(seq), &"x".repeat(500)).await.expect("an append");
    }
    if with_log {
        drop(journal);
        journal = open(&path);
        for seq in events..events + 50 {
            add(&journal, 1, Seq(seq), &"x".repeat(500)).await.expect("an append");
        }
        fs::copy(log_of(&path), log_of(&left.path().join("journal.db"))).expect("a copy");
    } else {
        drop(journal);
    }
    let copy = left.path().join("journal.db");
    fs::copy(&path, &copy).expect("a copy");
    (left, copy)
}

fn refused(path: &Path) -> String {
    let before = fs::read(path).ok();
    let log = fs::read(log_of(path)).ok();
    let error = SqliteJournal::open(path, SyncPolicy::Full).expect_err("it is not whole");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert_eq!((fs::read(path).ok(), fs::read(log_of(path)).ok()), (before, log), "unchanged");
    error.to_string()
}

#[tokio::test]
async fn a_truncated_journal_is_refused_wherever_it_was_cut() {
    for with_log in [false, true] {
        let (_folder, path) = killed(400, with_log).await;
        let length = fs::metadata(&path).expect("a file").len();
        for part in [1, 4096, length / 2, length - 4096, length - 1] {
            let (_folder, path) = killed(400, with_log).await;
            OpenOptions::new().write(true).open(&path).expect("a file").set_len(part).expect("cut");
            match SqliteJournal::open(&path, SyncPolicy::Full) {
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("truncated"), "{part}: {error}");
                }
                // What is cut off may be in the log.
                Ok(journal) => {
                    assert!(with_log && part >= length - 4096, "{part} of {length} bytes");
                    assert_eq!(all(&journal).await.len(), 400 + 50);
                    assert_eq!(journal.verify().await, Ok(()));
                }
            }
        }
    }
}

#[tokio::test]
async fn an_empty_file_is_not_a_new_journal() {
    let (_folder, path) = killed(10, true).await;
    OpenOptions::new().write(true).open(&path).expect("a file").set_len(0).expect("cut");
    assert!(refused(&path).contains("empty"));
    fs::remove_file(log_of(&path)).expect("a file");
    assert!(refused(&path).contains("empty"));
}

#[tokio::test]
async fn a_log_without_its_database_is_refused_and_kept() {
    let (_folder, path) = killed(10, true).await;
    fs::remove_file(&path).expect("a file");
    let error = refused(&path);
    assert!(error.contains("journal.db-wal") && error.contains("Put the file back"), "{error}");
    assert!(!path.exists(), "nothing was created in its place");
    // Moved away, the journal starts anew.
    fs::rename(log_of(&path), path.with_file_name("aside")).expect("a file");
    assert_eq!(all(&open(&path)).await, []);
}

/// A kill leaves a log, sometimes in the middle of a checkpoint: that is a whole journal.
#[tokio::test]
async fn what_a_kill_leaves_is_whole() {
    let (_folder, path) = killed(400, true).await;
    assert_eq!(all(&open(&path)).await.len(), 400 + 50);
    // In the middle of a checkpoint the file is shorter than its header says, and the log has the rest.
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    journal.append(creation(1)).await.expect("an append");
    for seq in 2..200 {
        add(&journal, 1, Seq(seq), &"x".repeat(500)).await.expect("an append");
    }
    let left = folder.path().join("left.db");
    fs::copy(&path, &left).expect("a copy");
    fs::copy(log_of(&path), folder.path().join("left.db-wal")).expect("a copy");
    assert_eq!(all(&open(&left)).await.len(), 200);
}

/// A creation that is killed leaves nothing at the place of the journal.
#[test]
fn a_journal_gets_its_name_when_it_is_complete() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(open(&path));
    let names: Vec<String> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(names.iter().all(|name| name.starts_with("journal.db")), "{names:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(&path).expect("a file").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}
