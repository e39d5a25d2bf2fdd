//! A journal that is deleted or replaced while it is open.

use std::fs;
use std::path::{Path, PathBuf};

use antiphon_core::Seq;
use antiphon_core::port::{AppendFault, JournalError, JournalLog};
use antiphon_sqlite::SqliteJournal;
use tempfile::TempDir;

use crate::world::{add, all, creation, open};

/// A journal with a few events, the last ones in its log only.
async fn filled(path: &Path) -> (SqliteJournal, Seq) {
    let journal = open(path);
    let mut seq = journal.append(creation(1)).await.expect("an append").seq;
    for _ in 0..20 {
        seq = add(&journal, 1, seq, "more").await.expect("an append").seq;
    }
    assert_eq!(journal.check_append().await, Ok(()));
    (journal, seq)
}

fn rescued(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let mut rescued: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().contains("rescued")).collect();
    rescued.sort();
    rescued
}

#[tokio::test]
async fn a_journal_that_is_gone_is_not_written_and_its_content_is_copied_once() {
    type Damage = fn(&Path);
    let deletes: Damage = |path| fs::remove_file(path).expect("a file");
    let deletes_all: Damage = |path| {
        for end in ["", "-wal", "-shm"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            fs::remove_file(PathBuf::from(name)).expect("a file");
        }
    };
    let moves: Damage = |path| fs::rename(path, path.with_extension("away")).expect("a file");
    let replaces: Damage = |path| {
        fs::write(path.with_extension("other"), "Dear diary").expect("a file");
        fs::rename(path.with_extension("other"), path).expect("a file");
    };
    let deletes_log: Damage = |path| {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        fs::remove_file(PathBuf::from(name)).expect("a file");
    };
    for (name, damage) in [
        ("deletes", deletes),
        ("deletes all", deletes_all),
        ("moves", moves),
        ("replaces", replaces),
        ("deletes the log", deletes_log),
    ] {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("journal.db");
        let (journal, seq) = filled(&path).await;
        let before = all(&journal).await;
        damage(&path);
        for _ in 0..3 {
            let error = add(&journal, 1, seq, "lost?").await.expect_err("its file is gone");
            assert!(matches!(error, JournalError::Unavailable { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains(".rescued-1"), "{name}: {error}");
            assert!(error.to_string().contains("antiphon restore"), "{name}: {error}");
        }
        let fault = journal.check_append().await.expect_err("its file is gone");
        assert!(matches!(fault, AppendFault::Replaced { .. }), "{name}: {fault:?}");
        let copies = rescued(folder.path());
        assert_eq!(copies.len(), 1, "{name}: {copies:?}");
        drop(journal);
        let copy = open(&copies[0]);
        assert_eq!(all(&copy).await, before, "{name}");
        assert_eq!(copy.verify().await, Ok(()), "{name}");
    }
}

#[tokio::test]
async fn a_journal_that_is_moved_back_is_written_again() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let (journal, seq) = filled(&path).await;
    fs::rename(&path, path.with_extension("away")).expect("a file");
    add(&journal, 1, seq, "no").await.expect_err("its file is gone");
    fs::rename(path.with_extension("away"), &path).expect("a file");
    assert_eq!(journal.check_append().await, Ok(()));
    add(&journal, 1, seq, "yes").await.expect("its file is there");
}

#[tokio::test]
async fn a_journal_whose_folder_is_gone_is_copied_elsewhere() {
    let folder = TempDir::new().expect("a folder");
    let (journal, seq) = {
        let inner = folder.path().join("state");
        fs::create_dir(&inner).expect("a folder");
        filled(&inner.join("journal.db")).await
    };
    let before = all(&journal).await;
    fs::remove_dir_all(folder.path().join("state")).expect("a folder");
    let error = add(&journal, 1, seq, "lost?").await.expect_err("its file is gone").to_string();
    let (_, rest) = error.split_once("every recorded event is in ").expect("a path");
    let copy = PathBuf::from(rest.split_once(": stop").expect("an advice").0);
    drop(journal);
    assert_eq!(all(&open(&copy)).await, before);
    for end in ["", ".lock", "-wal", "-shm"] {
        let mut name = copy.as_os_str().to_owned();
        name.push(end);
        let _ = fs::remove_file(PathBuf::from(name));
    }
}
