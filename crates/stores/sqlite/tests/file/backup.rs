//! Backups, with and without concurrent writers.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use antiphon_core::port::{Expected, JournalLog};
use antiphon_sqlite::{Backup, BackupError, OpenError, Progress, Replace, SqliteJournal};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::world::{all, append, creation, note, open};

/// Number of concurrent writers.
const WRITERS: u64 = 8;

/// Number of backups made meanwhile.
const BACKUPS: usize = 6;

/// Every name in a folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("a name");
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

pub(crate) fn back_up(journal: &Path, target: &Path) -> Result<Backup, BackupError> {
    SqliteJournal::back_up(journal, target, Replace::Never, &mut |_| {})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backup_is_a_snapshot_also_beside_writers() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = Arc::new(open(&path));
    let (done, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut writers = JoinSet::new();
    for number in 1..=WRITERS {
        journal.append(creation(number)).await.expect("a task");
        let (journal, done, answered) =
            (Arc::clone(&journal), Arc::clone(&done), Arc::clone(&answered));
        let text = "x".repeat(usize::try_from(number * 50).expect("a length"));
        writers.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                let more = append(number, Expected::Exists, vec![note(&text), note("more")]);
                let position = journal.append(more).await.expect("an append").position;
                answered.fetch_max(position.0, Ordering::SeqCst);
            }
        });
    }
    let mut made = Vec::new();
    for number in 0..BACKUPS {
        let before = answered.load(Ordering::SeqCst);
        let (path, target) = (path.clone(), folder.path().join(format!("{number}.backup")));
        let making = tokio::task::spawn_blocking(move || {
            (back_up(&path, &target).expect("a backup"), target)
        });
        let (backup, target) = making.await.expect("no panic");
        made.push((before, backup, target));
    }
    done.store(true, Ordering::Relaxed);
    while let Some(ended) = writers.join_next().await {
        ended.expect("no panic");
    }
    let everything = all(&*journal).await;
    for (before, backup, target) in made {
        let copy = SqliteJournal::open_read_only(&target).expect("a backup");
        let events = all(&copy).await;
        assert!(events.len() as u64 >= before, "{before} were there when {backup:?} began");
        assert_eq!(events, everything[..events.len()]);
        let bytes = fs::metadata(&target).expect("a file").len();
        let (events, tasks) = (events.len() as u64, WRITERS);
        assert_eq!(backup, Backup { events, tasks, unfinished: tasks, bytes, schema: 10 });
        assert!(events < everything.len() as u64, "a writer appended meanwhile");
    }
}

#[tokio::test]
async fn a_backup_is_one_private_file_and_the_journal_is_left_as_it_is() {
    let folder = TempDir::new().expect("a folder");
    let (path, target) = (folder.path().join("journal.db"), folder.path().join("one.backup"));
    let journal = open(&path);
    journal.append(creation(1)).await.expect("a task");
    let events = all(&journal).await;
    drop(journal);
    let before = fs::read(&path).expect("a file");
    let mut seen = Vec::new();
    let made = SqliteJournal::back_up(&path, &target, Replace::Never, &mut |step| seen.push(step));
    assert_eq!(made.expect("a backup").events, 2);
    let Some((Progress::Checking, [.., Progress::Copying { done, total }])) = seen.split_last()
    else {
        panic!("{seen:?}");
    };
    assert_eq!(done, total);
    assert_eq!(fs::read(&path).expect("a file"), before);
    assert_eq!(fs::metadata(&target).expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(all(&SqliteJournal::open_read_only(&target).expect("a backup")).await, events);
    let names = names(folder.path());
    let beside: Vec<_> = names.iter().filter(|name| name.starts_with("one.")).collect();
    assert_eq!(beside, ["one.backup"]);
    assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
}

#[test]
fn what_is_there_stays_unless_it_may_give_way() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(open(&path));
    let target = folder.path().join("taken");
    fs::write(&target, "mine").expect("a file");
    let error = back_up(&path, &target).expect_err("it is taken");
    assert!(matches!(&error, BackupError::Exists { path } if *path == target), "{error:?}");
    assert_eq!(fs::read_to_string(&target).expect("a file"), "mine");
    let force = |target: &Path| SqliteJournal::back_up(&path, target, Replace::Always, &mut |_| {});
    assert_eq!(force(&target).expect("a backup").events, 0);
    // What is not a file is never replaced.
    let link = folder.path().join("link");
    fs::write(folder.path().join("elsewhere"), "mine").expect("a file");
    symlink("elsewhere", &link).expect("a link");
    for taken in [&link, folder.path()] {
        let error = force(taken).expect_err("it is no file");
        assert!(matches!(error, BackupError::NotAFile { .. }), "{error:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("elsewhere")).expect("a file"), "mine");
    let error = force(&folder.path().join("no/such/folder")).expect_err("there is none");
    assert!(matches!(error, BackupError::Unwritable { .. }), "{error:?}");
}

#[test]
fn the_journal_is_never_replaced_by_its_own_copy() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(open(&path));
    fs::create_dir(folder.path().join("in")).expect("a folder");
    symlink("../journal.db", folder.path().join("in/other")).expect("a link");
    for own in
        ["journal.db", "journal.db-wal", "journal.db-shm", "in/../journal.db.lock", "in/other"]
    {
        let target = folder.path().join(own);
        let error = SqliteJournal::back_up(&path, &target, Replace::Always, &mut |_| {})
            .expect_err("it is the journal");
        assert!(matches!(error, BackupError::Itself { .. }), "{own}: {error:?}");
    }
}

#[test]
fn another_journal_is_never_replaced_and_no_log_is_read_as_one_of_the_copy() {
    let folder = TempDir::new().expect("a folder");
    let [path, other] = ["journal.db", "other.db"].map(|name| folder.path().join(name));
    drop(open(&path));
    drop(open(&other));
    let whole = fs::read(&other).expect("a journal");
    let force = |target: &Path| SqliteJournal::back_up(&path, target, Replace::Always, &mut |_| {});
    let error = force(&other).expect_err("it is a journal");
    assert!(
        matches!(&error, BackupError::BelongsToJournal { path, .. } if *path == other),
        "{error:?}"
    );
    assert_eq!(fs::read(&other).expect("a journal"), whole);
    for end in ["-wal", "-shm", "-journal", ".lock"] {
        let left = folder.path().join(format!("new{end}"));
        fs::write(&left, "").expect("a file");
        let error = force(&folder.path().join("new")).expect_err("something lies beside it");
        assert!(
            matches!(&error, BackupError::BelongsToJournal { companion, .. } if *companion == left),
            "{error:?}"
        );
        fs::remove_file(left).expect("a file");
    }
    force(&folder.path().join("new")).expect("a backup");
}

/// Makes something that is not a journal.
type Making = fn(&Path);

#[test]
fn what_is_no_journal_cannot_be_backed_up_and_nothing_is_left() {
    let folder = TempDir::new().expect("a folder");
    let (path, target) = (folder.path().join("journal.db"), folder.path().join("backup"));
    let cases: [(&str, Making); 5] = [
        ("No such file", |_| {}),
        ("the file is empty", |path| fs::write(path, "").expect("a file")),
        ("not a database", |path| fs::write(path, "Dear diary, ".repeat(99)).expect("a file")),
        ("not a journal", |path| {
            let other = Connection::open(path).expect("a database");
            other.execute_batch("CREATE TABLE notes (text)").expect("a table");
        }),
        ("1 tasks lack events", |path| {
            drop(open(path));
            let own = Connection::open(path).expect("a database");
            let task =
                "INSERT INTO tasks (id, task_id, indexed, ended, session, agent, status, title,
                            seq, turns, calls, messages, created_s, created_ns, last_s, last_ns,
                            history_messages)
                        VALUES (1, 't', 0, 0, 's', 'a', 'pending', '', 3, 0, 0, 0, 0, 0, 0, 0, 0)";
            own.execute_batch(task).expect("a task");
        }),
    ];
    for (expected, make) in cases {
        let _ = fs::remove_file(&path);
        make(&path);
        let error = back_up(&path, &target).expect_err(expected);
        assert!(
            matches!(
                error,
                BackupError::Journal(OpenError::Damaged { .. } | OpenError::Unusable { .. })
            ),
            "{error:?}"
        );
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().contains("journal.db"), "{error}");
        let names = names(folder.path());
        let journals = names.iter().all(|name| name.starts_with("journal.db"));
        assert!(journals, "{expected}: {names:?}");
    }
}

#[test]
fn leftovers_of_a_killed_backup_are_removed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(open(&path));
    let make = |name: &str, age_s: u64| -> PathBuf {
        let left = folder.path().join(name);
        fs::create_dir(&left).expect("a folder");
        fs::write(left.join("journal.db"), "half").expect("a file");
        let at = SystemTime::now() - Duration::from_secs(age_s);
        File::open(&left).and_then(|folder| folder.set_modified(at)).expect("a time");
        left
    };
    let left = make(".antiphon-copy-left", 3600);
    let young = make(".antiphon-copy-young", 1);
    let busy = make(".antiphon-copy-busy", 3600);
    let foreign = make("antiphon-copy-foreign", 3600);
    let link = folder.path().join(".antiphon-copy-link");
    symlink(&foreign, &link).expect("a link");
    let lock = File::open(&busy).expect("a folder");
    lock.lock().expect("a lock");
    back_up(&path, &folder.path().join("backup")).expect("a backup");
    let there = [&left, &young, &busy, &foreign, &link].map(|path| path.exists());
    assert_eq!(there, [false, true, true, true, true]);
}
