//! Restores, with and without an existing journal.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use antiphon_core::port::{Expected, JournalLog};
use antiphon_core::{Event, Seq, StatusChanged, TaskId, TaskStatus};
use antiphon_sqlite::{BackupError, OpenError, Replace, Restore, Restored, SqliteJournal};
use chrono::{DateTime, Utc};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::backup::{back_up, names};
use crate::world::{add, all, append, creation, open, task};

/// A journal and an older backup of it.
struct Place {
    folder: TempDir,
    /// Events of the backup.
    earlier: Vec<Event>,
    /// Events of the journal: more, and another task.
    later: Vec<Event>,
}

impl Place {
    async fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("journal.db");
        let journal = open(&path);
        journal.append(creation(1)).await.expect("a task");
        for seq in 2..60 {
            add(&journal, 1, Seq(seq), &"early ".repeat(100)).await.expect("an append");
        }
        let earlier = all(&journal).await;
        back_up(&path, &folder.path().join("backup")).expect("a backup");
        journal.append(creation(2)).await.expect("a task");
        for seq in 2..60 {
            add(&journal, 2, Seq(seq), &"late ".repeat(100)).await.expect("an append");
        }
        let later = all(&journal).await;
        Self { folder, earlier, later }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn prepare(&self, replace: Replace) -> Result<Restore, BackupError> {
        Restore::prepare(&self.at("backup"), &self.at("journal.db"), replace, &mut |_| {})
    }

    fn restore(&self) -> Restored {
        let ready = self.prepare(Replace::Always).expect("a backup");
        ready.put_in_place(now()).expect("a journal")
    }

    /// The journal equals the backup, and can be written to.
    async fn check_restored(&self) {
        let journal = open(&self.at("journal.db"));
        assert_eq!(all(&journal).await, self.earlier);
        assert_eq!(journal.verify().await, Ok(()));
        journal.append(creation(3)).await.expect("a task");
        drop(journal);
        assert_eq!(all(&open(&self.at("journal.db"))).await.len(), self.earlier.len() + 2);
    }
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 120_000_000).expect("a time")
}

const BEFORE: &str = "journal.db.before-20270115T080000.120Z";

/// The files of a journal as a kill leaves them: the last events are in the log only.
fn as_killed(journal: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for end in ["", "-wal", "-shm"] {
        let name = format!("journal.db{end}");
        fs::copy(journal.with_file_name(&name), to.join(&name)).expect("a file");
    }
}

#[tokio::test]
async fn a_restored_journal_is_the_backup_and_the_old_one_is_kept() {
    let place = Place::new().await;
    let before = place.at(BEFORE);
    assert_eq!(place.restore(), Restored { before: Some(before.clone()) });
    assert_eq!(all(&open(&before)).await, place.later);
    place.check_restored().await;
    let names = names(place.folder.path());
    assert!(
        !names.iter().any(|name| name.contains(".restore-") || name.starts_with('.')),
        "{names:?}"
    );
}

#[tokio::test]
async fn where_no_journal_is_the_backup_becomes_one() {
    let place = Place::new().await;
    let (file, journal) = (place.at("backup"), place.at("new/journal.db"));
    fs::create_dir(place.at("new")).expect("a folder");
    let ready = Restore::prepare(&file, &journal, Replace::Never, &mut |_| {}).expect("a backup");
    assert_eq!(ready.backup().events, place.earlier.len() as u64);
    assert_eq!(ready.put_in_place(now()).expect("a journal"), Restored { before: None });
    assert_eq!(names(&place.at("new")), ["journal.db", "journal.db.lock"]);
    assert_eq!(all(&open(&journal)).await, place.earlier);
}

#[tokio::test]
async fn a_journal_that_is_there_or_in_use_is_left_alone() {
    let place = Place::new().await;
    let error = place.prepare(Replace::Never).expect_err("a journal is there");
    assert!(matches!(error, BackupError::Exists { .. }), "{error:?}");
    let owner = open(&place.at("journal.db"));
    let error = place.prepare(Replace::Always).expect_err("a process owns it");
    assert!(matches!(error, BackupError::Journal(OpenError::Owned { .. })), "{error:?}");
    drop(owner);
    // The process that prepares a restore owns the journal, until it is done or dropped.
    let ready = place.prepare(Replace::Always).expect("a backup");
    let error = SqliteJournal::open(&place.at("journal.db"), antiphon_sqlite::SyncPolicy::Full);
    assert!(matches!(error, Err(OpenError::Owned { .. })), "{error:?}");
    drop(ready);
    assert_eq!(all(&open(&place.at("journal.db"))).await, place.later);
    let own = ["backup", "journal.db", "journal.db-shm", "journal.db-wal", "journal.db.lock"];
    assert_eq!(names(place.folder.path()), own);
    let link = place.at("link.db");
    symlink("journal.db", &link).expect("a link");
    let error = Restore::prepare(&place.at("backup"), &link, Replace::Always, &mut |_| {});
    assert!(matches!(error, Err(BackupError::NotAFile { .. })), "{error:?}");
}

/// If SQLite read it as a log of the new journal, half of the old journal would come back.
#[tokio::test]
async fn the_log_of_a_killed_journal_stays_with_it() {
    let place = Place::new().await;
    let killed = place.at("killed");
    let journal = open(&place.at("journal.db"));
    add(&journal, 2, Seq(60), "the last").await.expect("an append");
    let later = all(&journal).await;
    as_killed(&place.at("journal.db"), &killed);
    drop(journal);
    assert!(fs::metadata(killed.join("journal.db-wal")).expect("a log").len() > 0);
    let ready = Restore::prepare(
        &place.at("backup"),
        &killed.join("journal.db"),
        Replace::Always,
        &mut |_| {},
    );
    let restored = ready.expect("a backup").put_in_place(now()).expect("a journal");
    let expected = ["journal.db", BEFORE, "journal.db.lock"];
    assert_eq!(names(&killed), expected);
    assert_eq!(all(&open(&killed.join("journal.db"))).await, place.earlier);
    assert_eq!(all(&open(&restored.before.expect("the old one"))).await, later);
}

#[tokio::test]
async fn a_damaged_journal_is_set_aside_with_its_log() {
    let place = Place::new().await;
    let (killed, log) = (place.at("killed"), place.at("killed/journal.db-wal"));
    let journal = open(&place.at("journal.db"));
    add(&journal, 2, Seq(60), "the last").await.expect("an append");
    as_killed(&place.at("journal.db"), &killed);
    fs::write(killed.join("journal.db"), "Dear diary, ".repeat(1000)).expect("a file");
    let log = fs::read(log).expect("a log");
    let (file, path) = (place.at("backup"), killed.join("journal.db"));
    let ready = Restore::prepare(&file, &path, Replace::Always, &mut |_| {}).expect("a backup");
    ready.put_in_place(now()).expect("a journal");
    assert_eq!(all(&open(&path)).await, place.earlier);
    assert!(fs::read_to_string(killed.join(BEFORE)).expect("a file").starts_with("Dear diary"));
    assert_eq!(fs::read(killed.join(format!("{BEFORE}-wal"))).expect("a log"), log);
    // The same when only the log exists.
    fs::remove_file(&path).expect("a file");
    fs::write(killed.join("journal.db-wal"), &log).expect("a file");
    fs::write(killed.join("journal.db-journal"), "to be undone").expect("a file");
    let ready = Restore::prepare(&file, &path, Replace::Never, &mut |_| {}).expect("a backup");
    let later = now() + chrono::TimeDelta::seconds(1);
    assert_eq!(ready.put_in_place(later).expect("a journal"), Restored { before: None });
    assert_eq!(all(&open(&path)).await, place.earlier);
    let kept =
        |end: &str| fs::read(killed.join(format!("journal.db.before-20270115T080001.120Z{end}")));
    assert_eq!(kept("-wal").expect("a log"), log);
    assert_eq!(kept("-journal").expect("a log"), b"to be undone");
}

#[tokio::test]
async fn a_restore_waits_for_readers_of_the_old_journal() {
    let place = Place::new().await;
    let killed = place.at("killed");
    let journal = open(&place.at("journal.db"));
    add(&journal, 2, Seq(60), "the last").await.expect("an append");
    as_killed(&place.at("journal.db"), &killed);
    let path = killed.join("journal.db");
    let reader = Connection::open(&path).expect("a reader");
    let count = "SELECT count(*) FROM events";
    reader.execute_batch("BEGIN").expect("a moment");
    let seen: u64 = reader.query_row(count, (), |row| row.get(0)).expect("a number");
    let prepare = || {
        Restore::prepare(&place.at("backup"), &path, Replace::Always, &mut |_| {})
            .expect("a backup")
    };
    let error = prepare().put_in_place(now()).expect_err("a process reads it");
    assert!(matches!(error, BackupError::InUse { .. }), "{error:?}");
    assert_eq!(reader.query_row(count, (), |row| row.get(0)), Ok(seen));
    reader.execute_batch("COMMIT").expect("an end");
    // A reader may still have it open: it reads the old journal.
    prepare().put_in_place(now()).expect("a journal");
    assert_eq!(reader.query_row(count, (), |row| row.get(0)), Ok(seen));
    let journal = open(&path);
    assert_eq!(all(&journal).await, place.earlier);
    journal.append(creation(3)).await.expect("a task");
    assert_eq!(reader.query_row(count, (), |row| row.get(0)), Ok(seen));
}

#[tokio::test]
async fn what_is_written_to_the_copy_comes_with_it() {
    let place = Place::new().await;
    let ready = place.prepare(Replace::Always).expect("a backup");
    let staged = open(ready.staged());
    staged.append(creation(9)).await.expect("a task");
    drop(staged);
    ready.put_in_place(now()).expect("a journal");
    let events = all(&open(&place.at("journal.db"))).await;
    assert_eq!(events.len(), place.earlier.len() + 2);
    let ready = place.prepare(Replace::Always).expect("a backup");
    let staged = open(ready.staged());
    staged.append(creation(9)).await.expect("a task");
    let error = ready.put_in_place(now()).expect_err("a process has it open");
    assert!(error.to_string().ends_with("it is still open"), "{error}");
    drop(staged);
    assert_eq!(all(&open(&place.at("journal.db"))).await, events);
}

/// Nothing is restored from it, and nothing changes.
fn check_refused(place: &Place, what: &str) -> BackupError {
    let journal = fs::read(place.at("journal.db")).expect("a file");
    let error = place.prepare(Replace::Always).expect_err(what);
    assert_eq!(fs::read(place.at("journal.db")).expect("a file"), journal, "{what}");
    let names = names(place.folder.path());
    assert!(names.iter().all(|name| !name.starts_with('.')), "{what}: {names:?}");
    error
}

#[tokio::test]
async fn a_file_that_is_no_whole_backup_is_refused() {
    let place = Place::new().await;
    let (file, whole) = (place.at("backup"), fs::read(place.at("backup")).expect("a file"));
    let mut cases = vec![("empty", Vec::new()), ("text", b"Dear diary, ".repeat(999))];
    let length = whole.len();
    for cut in [1, 15, 16, 17, 100, 4095, 4096, 8192, length / 2, length - 4096, length - 1] {
        cases.push(("cut off", whole[..cut].to_vec()));
    }
    cases.push(("longer", [&whole[..], b"\n"].concat()));
    for bit in
        (0..length * 8).step_by(length * 8 / 100).chain((length - 90) * 8..length * 8).step_by(3)
    {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        cases.push(("flipped", flipped));
    }
    for (what, content) in cases {
        fs::write(&file, content).expect("a file");
        let error = check_refused(&place, what);
        assert!(
            matches!(error, BackupError::Journal(OpenError::Damaged { .. })),
            "{what}: {error:?}"
        );
        assert!(error.to_string().contains("/backup is damaged or not a journal: "), "{error}");
    }
    fs::write(&file, &whole).expect("a file");
    place.prepare(Replace::Always).expect("it is whole again");
}

#[tokio::test]
async fn a_database_that_is_no_journal_of_ours_is_refused() {
    let place = Place::new().await;
    let cases = [
        (
            "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
            "the tables of schema 10",
        ),
        ("CREATE VIEW v AS SELECT 1", "the tables of schema 10"),
        ("DROP TABLE replies", "the tables of schema 10"),
        ("DELETE FROM events WHERE position = 1", "59 events have the positions 2 to 60"),
        ("DELETE FROM events WHERE position = 7", "59 events have the positions 1 to 60"),
        ("DELETE FROM events WHERE position = 60", "1 tasks lack events"),
        ("UPDATE events SET seq = 70 WHERE position = 60", "1 tasks lack events"),
        ("DELETE FROM tasks", "60 events lack their task"),
        ("PRAGMA application_id = 7", "not a journal"),
        ("PRAGMA user_version = 0", "not a journal"),
    ];
    for (statements, expected) in cases {
        let file = place.at("other");
        let _ = fs::remove_file(&file);
        fs::copy(place.at("backup"), &file).expect("a copy");
        let other = Connection::open(&file).expect("a database");
        other.pragma_update(None, "foreign_keys", "OFF").expect("a setting");
        other.execute_batch(&format!("{statements}; VACUUM")).expect(statements);
        drop(other);
        let refused =
            Restore::prepare(&file, &place.at("journal.db"), Replace::Always, &mut |_| {});
        let error = refused.expect_err(statements);
        assert!(matches!(error, BackupError::Journal(OpenError::Damaged { .. })), "{error:?}");
        assert!(error.to_string().contains(expected), "{statements}: {error}");
    }
    let file = fs::OpenOptions::new().write(true).open(place.at("other")).expect("a file");
    let ours = antiphon_sqlite::APPLICATION_ID.to_be_bytes();
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("a header");
    file.write_all_at(&ours, 68).expect("a header");
    let refused =
        Restore::prepare(&place.at("other"), &place.at("journal.db"), Replace::Always, &mut |_| {});
    let error = refused.expect_err("it is of a later version");
    assert!(matches!(error, BackupError::Journal(OpenError::Later { found: 99, .. })), "{error:?}");
}

#[tokio::test]
async fn what_is_no_file_is_refused_and_a_link_leads_to_one() {
    let place = Place::new().await;
    let journal = place.at("journal.db");
    let prepare =
        |name: &str| Restore::prepare(&place.at(name), &journal, Replace::Always, &mut |_| {});
    let error = prepare("nothing").expect_err("it is not there");
    assert!(matches!(error, BackupError::Journal(OpenError::Unusable { .. })), "{error:?}");
    fs::create_dir(place.at("folder")).expect("a folder");
    let error = prepare("folder").expect_err("it is no file");
    assert!(matches!(error, BackupError::NotAFile { .. }), "{error:?}");
    for own in ["journal.db", "folder/../journal.db"] {
        let error = prepare(own).expect_err("it is the journal");
        assert!(matches!(error, BackupError::Itself { .. }), "{error:?}");
    }
    symlink("backup", place.at("latest")).expect("a link");
    prepare("latest").expect("a backup").put_in_place(now()).expect("a journal");
    place.check_restored().await;
    // The old journal can be restored in turn, although it has no checksum.
    let ready = Restore::prepare(&place.at(BEFORE), &journal, Replace::Always, &mut |_| {});
    let later = now() + chrono::TimeDelta::seconds(1);
    ready.expect("a journal").put_in_place(later).expect("a journal");
    assert_eq!(all(&open(&journal)).await, place.later);
}

/// Older journals are backed up and restored as they are, and migrated when they are opened.
#[tokio::test]
async fn a_backup_of_an_earlier_schema_is_restored_and_brought_up_to_date() {
    let fixtures = [
        (1, include_str!("../fixtures/v1-journal.sql")),
        (3, include_str!("../fixtures/v3-journal.sql")),
    ];
    for (schema, statements) in fixtures {
        let folder = TempDir::new().expect("a folder");
        let (file, path) = (folder.path().join("old"), folder.path().join("journal.db"));
        Connection::open(&path).and_then(|old| old.execute_batch(statements)).expect("a journal");
        assert_eq!(back_up(&path, &file).expect("a backup").schema, schema);
        let expected = all(&open(&path)).await;
        let ready = Restore::prepare(&file, &path, Replace::Always, &mut |_| {});
        ready.expect("a backup").put_in_place(now()).expect("a journal");
        let error = SqliteJournal::open_read_only(&path).expect_err("it is as it was");
        assert!(matches!(error, OpenError::Earlier { found, .. } if found == schema), "{error:?}");
        assert_eq!(all(&open(&path)).await, expected);
    }
}

#[tokio::test]
async fn a_distrusted_backup_is_made_anew_from_its_events() {
    let folder = TempDir::new().expect("a folder");
    let (file, path) = (folder.path().join("theirs.db"), folder.path().join("journal.db"));
    let journal = open(&file);
    journal.append(creation(1)).await.expect("a task");
    journal.append(creation(2)).await.expect("a task");
    let end = StatusChanged::new(TaskStatus::Canceled);
    journal.append(append(2, Expected::Exists, vec![end.into()])).await.expect("an end");
    drop(journal);
    let forged = Connection::open(&file).expect("a file");
    forged
        .execute_batch(
            "UPDATE tasks SET ended = 1 - ended, title = 'forged', agent = 'forged';
             INSERT INTO raised VALUES (739000, '', 1000000);
             INSERT INTO spending VALUES (739000, '', 'tester', 'm', 1, 2, 3, NULL, NULL);
             INSERT INTO checkpoints VALUES (1, 1, 1, 0, '{}');
             INSERT INTO keys VALUES ('http:of the user', 2, 3, 1);
             UPDATE events SET data = '{' WHERE seq = 2 AND task = 1;
             PRAGMA journal_mode = DELETE",
        )
        .expect("a forged index");
    drop(forged);
    let mut ready = Restore::prepare(&file, &path, Replace::Never, &mut |_| {}).expect("a backup");
    assert_eq!(ready.backup().unfinished, 1);
    assert_eq!(ready.distrust("theirs.db", now()).expect("a copy"), [task(1)]);
    assert_eq!(ready.backup().unfinished, 0, "the one that cannot be read has failed");
    ready.put_in_place(now()).expect("a journal");
    let journal = open(&path);
    let kinds: Vec<(TaskId, &str)> = all(&journal)
        .await
        .into_iter()
        .map(|event| (event.task_id.clone(), event.body.event_type()))
        .collect();
    let expected = [
        (1, "task_created"),
        (2, "task_created"),
        (2, "message_appended"),
        (2, "task_restored"),
        (2, "status_changed"),
        (1, "status_changed"),
    ];
    assert_eq!(kinds, expected.map(|(number, kind)| (task(number), kind)));
    drop(journal);
    let made = Connection::open(&path).expect("a file");
    let count = |statement: &str| made.query_row(statement, (), |row| row.get(0));
    assert_eq!(count("SELECT count(*) FROM tasks WHERE ended AND agent = 'tester'"), Ok(2));
    assert_eq!(count("SELECT count(*) FROM raised"), Ok(0));
    assert_eq!(count("SELECT count(*) FROM spending"), Ok(1));
    assert_eq!(count("SELECT count(*) FROM checkpoints"), Ok(0));
    assert_eq!(count("SELECT count(*) FROM keys"), Ok(0));
}

#[tokio::test]
async fn a_trigger_with_a_name_of_sqlite_is_refused() {
    let place = Place::new().await;
    let theirs = place.at("theirs.db");
    fs::copy(place.at("backup"), &theirs).expect("a copy");
    let forged = Connection::open(&theirs).expect("a file");
    forged
        .execute_batch(
            "PRAGMA writable_schema = ON;
             INSERT INTO sqlite_schema VALUES ('trigger', 'sqlite_x', 'tasks', 0,
                 'CREATE TRIGGER sqlite_x BEFORE INSERT ON tasks BEGIN DELETE FROM events; END');
             VACUUM",
        )
        .expect("a forged schema");
    drop(forged);
    let journal = place.at("journal.db");
    let error = Restore::prepare(&theirs, &journal, Replace::Always, &mut |_| {})
        .expect_err("it has a trigger");
    assert!(error.to_string().contains("does not have the tables"), "{error}");
}

#[tokio::test]
async fn a_named_pipe_in_place_of_a_log_is_refused() {
    for end in ["-wal", "-journal", "-shm"] {
        let place = Place::new().await;
        let pipe = place.at(&format!("backup{end}"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        symlink("backup", place.at("latest")).expect("a link");
        for name in ["backup", "latest"] {
            let journal = place.at("journal.db");
            let error = Restore::prepare(&place.at(name), &journal, Replace::Always, &mut |_| {})
                .expect_err("it has a named pipe for a log");
            assert!(matches!(error, BackupError::NotAFile { .. }), "{error:?}");
        }
    }
}
