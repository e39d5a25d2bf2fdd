//! Files that are damaged, of another kind, or of another time.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use antiphon_core::port::{Journal, JournalError};
use antiphon_core::{Position, Seq};
use antiphon_sqlite::{OpenError, SqliteJournal, Sync};
use tempfile::TempDir;

use crate::world::{add, creation, open};

#[test]
fn another_kind_of_file_is_left_as_it_is() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let text = "Dear diary, ".repeat(1000);
    fs::write(&path, &text).expect("a file");
    let error = SqliteJournal::open(&path, Sync::Full).expect_err("it is no journal");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&path).expect("a file"), text);
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
    let error = SqliteJournal::open(&path, Sync::Full).expect_err("it is of a later version");
    assert!(matches!(error, OpenError::Later { found: 99, known: 1, .. }), "{error:?}");
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
    let read = antiphon_core::port::Read {
        task_id: None,
        after: Position(0),
        limit: std::num::NonZeroUsize::MAX,
    };
    let error = journal.read(read).await.expect_err("it is damaged");
    assert!(matches!(error, JournalError::Corrupt { .. }), "{error:?}");
}
