//! Reading while another process writes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::process::Stdio;

use antiphon_core::Seq;
use antiphon_core::port::{Expected, JournalError, JournalLog, TaskIndex, TaskQuery, TaskSelector};
use antiphon_sqlite::{OpenError, SqliteJournal};
use tempfile::TempDir;

use crate::world::{add, all, append, child, creation, note, open, task};

#[tokio::test]
async fn one_who_looks_on_sees_what_another_process_writes() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let mut writer = child("killed::a_child_writes_until_it_is_killed", folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(writer.stdout.take().expect("its output")).lines();
    let mut answered = || loop {
        let line = lines.next().expect("more lines").expect("a line");
        if let Some((number, seq)) = line.split_once(' ')
            && let (Ok(number), Ok(seq)) = (number.parse(), seq.parse())
        {
            return (task(number), Seq(seq));
        }
    };
    answered();
    let journal = SqliteJournal::open_read_only(&path).expect("it is there");
    for _ in 0..20 {
        let (task_id, seq) = answered();
        let query = TaskQuery { which: TaskSelector::One(task_id), limit: NonZeroUsize::MIN };
        let found = journal.tasks(query).await.expect("tasks");
        assert!(found[0].seq >= seq, "{seq} was answered before {found:?} was read");
    }
    let refused = journal.append(creation(99)).await.expect_err("it is not for writing");
    let JournalError::Unavailable { reason } = &refused else { panic!("{refused:?}") };
    let pid = writer.id();
    assert!(reason.contains(&format!("is owned by process {pid}:")), "{reason}");
    writer.kill().expect("a kill");
    writer.wait().expect("an end");

    let events = all(&journal).await;
    assert!(events.len() > 20);
    let refused = journal.append(creation(99)).await.expect_err("it is not for writing");
    assert!(refused.to_string().ends_with("is open for reading only"), "{refused}");
    assert_eq!(journal.verify().await, Ok(()));
    let own = open(&path);
    assert_eq!(all(&own).await, events, "nothing was changed by looking");
    own.append(creation(99)).await.expect("the next owner writes");
    assert_eq!(all(&journal).await.len(), events.len() + 2);
}

#[tokio::test]
async fn a_journal_without_an_owner_can_be_read() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let own = open(&path);
    own.append(creation(1)).await.expect("an append");
    add(&own, 1, Seq(2), "more").await.expect("an append");
    let events = all(&own).await;
    drop(own);
    let before = fs::read(&path).expect("a file");
    let journal = SqliteJournal::open_read_only(&path).expect("it is there");
    assert_eq!(all(&journal).await, events);
    let more = append(1, Expected::At(Seq(3)), vec![note("never")]);
    assert!(matches!(journal.append(more).await, Err(JournalError::Unavailable { .. })));
    drop(journal);
    assert_eq!(fs::read(&path).expect("a file"), before);
}

#[test]
fn what_is_not_there_is_not_made() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let error = SqliteJournal::open_read_only(&path).expect_err("it is not there");
    assert!(matches!(error, OpenError::Unusable { .. }), "{error:?}");
    assert!(error.to_string().contains("No such file"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn what_cannot_be_read_is_said_to_be_what_it_is() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    fs::write(&path, "").expect("a file");
    let error = SqliteJournal::open_read_only(&path).expect_err("it is empty");
    assert!(matches!(error, OpenError::Earlier { found: 0, .. }), "{error:?}");
    fs::write(&path, "Dear diary, ".repeat(1000)).expect("a file");
    let error = SqliteJournal::open_read_only(&path).expect_err("it is no journal");
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    fs::remove_file(&path).expect("a file");
    drop(open(&path));
    let file = fs::OpenOptions::new().write(true).open(&path).expect("a file");
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("a header");
    let error = SqliteJournal::open_read_only(&path).expect_err("it is of a later version");
    assert!(matches!(error, OpenError::Later { found: 99, .. }), "{error:?}");
}
