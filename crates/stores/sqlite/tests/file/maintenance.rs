//! Verify, compact, prune and repair: what they keep, what they remove, and while whom they refuse.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use antiphon_core::port::{Append, Expected, IdempotencyKey, JournalIndex, JournalLog};
use antiphon_core::{
    DayRange, Event, EventBody, HistoryRef, SessionId, StatusChanged, TaskCreated, TaskId,
    TaskStatus, Usage, UsageRecorded,
};
use antiphon_sqlite::{
    OpenError, PruneMode, PruneSelection, Pruned, Replace, Restore, SqliteJournal,
};
use chrono::{DateTime, NaiveDate, Utc};
use tempfile::TempDir;

use crate::world::{all, note, open, task};

const EVER: DayRange = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };

fn day(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + chrono::TimeDelta::days(day)
}

/// A task that begins on a day.
struct Begun<'a> {
    number: u64,
    session: &'a str,
    parent: Option<u64>,
    history: Option<u64>,
    on: i64,
    ends: bool,
}

const PLAIN: Begun<'static> =
    Begun { number: 0, session: "s", parent: None, history: None, on: 0, ends: true };

async fn begin(journal: &SqliteJournal, begun: Begun<'_>) {
    let Begun { number, session, parent, history, on, ends } = begun;
    let session = SessionId::parse(session).expect("an id");
    let created = TaskCreated {
        parent: parent.map(task),
        root: parent.map(task),
        history: history
            .map(|number| HistoryRef { task_id: task(number), seq: antiphon_core::Seq(2) }),
        ..TaskCreated::new("tester", session)
    };
    let usage = Usage { input_tokens: 7, ..Usage::default() };
    let paid = UsageRecorded { model: "scripted/x".to_owned(), usage, purpose: None };
    let mut events: Vec<EventBody> = vec![created.into(), note(&"x".repeat(3000)), paid.into()];
    if ends {
        events.push(StatusChanged::new(TaskStatus::Completed).into());
    }
    let append = Append {
        task_id: task(number),
        expected: Expected::NoTask,
        at: day(on),
        events,
        key: Some(IdempotencyKey(format!("key-{number}"))),
    };
    journal.append(append).await.expect("an append");
}

/// Ten tasks that ended on days 1 to 10, in sessions of their own.
async fn ten(path: &Path) -> SqliteJournal {
    let journal = open(path);
    for number in 1..=10 {
        let (session, on) = (format!("s{number}"), i64::try_from(number).expect("small"));
        begin(&journal, Begun { number, session: &session, on, ..PLAIN }).await;
    }
    journal
}

fn prune(path: &Path, selection: PruneSelection) -> Pruned {
    SqliteJournal::prune(path, selection, PruneMode::Remove, day(100), &mut |_| {}).expect("pruned")
}

fn before(on: i64) -> PruneSelection {
    PruneSelection { ended_before: Some(day(on)), ..PruneSelection::default() }
}

fn tasks_of(events: &[Event]) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = events.iter().map(|event| event.task_id.clone()).collect();
    tasks.dedup();
    tasks
}

/// Every event, without a look at gaps.
async fn left(journal: &SqliteJournal) -> Vec<Event> {
    let read = antiphon_core::port::Read {
        task_id: None,
        after: antiphon_core::Position(0),
        limit: std::num::NonZeroUsize::MAX,
    };
    journal.read(read).await.expect("a page").events
}

fn assert_sound(path: &Path) {
    let found = SqliteJournal::verify_file(path, &mut |_| {}).expect("verified");
    assert_eq!(found.problems, Vec::<String>::new());
}

#[tokio::test]
async fn pruned_tasks_are_gone_and_the_rest_is_as_it_was() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = ten(&path).await;
    let before_events = all(&journal).await;
    let spent = journal.spending(EVER).await.expect("spending");
    drop(journal);
    let length = fs::metadata(&path).expect("a file").len();
    let selection = before(8);
    let dry = SqliteJournal::prune(&path, selection, PruneMode::DryRun, day(100), &mut |_| {})
        .expect("dry");
    assert_eq!((dry.tasks.len(), dry.events, dry.sessions), (7, 28, 7));
    let pruned = prune(&path, selection);
    assert_eq!((&pruned.tasks, pruned.events), (&dry.tasks, dry.events));
    assert_eq!(pruned.tasks, (1..=7).map(task).collect::<Vec<_>>());
    assert!(pruned.bytes_after < pruned.bytes_before, "{pruned:?}");
    assert!(fs::metadata(&path).expect("a file").len() < length, "space is given back");
    assert_sound(&path);
    let journal = open(&path);
    assert_eq!(left(&journal).await, before_events[28..]);
    assert_eq!(journal.spending(EVER).await.expect("spending"), spent, "what was spent stays");
    let sessions = journal.sessions(std::num::NonZeroUsize::MAX.into()).await.expect("sessions");
    assert_eq!(sessions.len(), 3);
    // A key of a pruned task is answered, and neither its number nor its id is used again.
    let key = IdempotencyKey("key-3".to_owned());
    assert_eq!(journal.answered(&key).await.expect("an answer").expect("known").task_id, task(3));
    begin(&journal, Begun { number: 11, session: "s11", on: 11, ..PLAIN }).await;
    let last = left(&journal).await.pop().expect("an event");
    assert_eq!((last.task_id, last.position.0), (task(11), 44));
    let key = IdempotencyKey("key-11".to_owned());
    assert_eq!(journal.answered(&key).await.expect("an answer").expect("known").task_id, task(11));
    drop(journal);
    assert_sound(&path);
    assert_eq!(
        prune(&path, selection),
        Pruned {
            bytes_before: fs::metadata(&path).expect("a file").len(),
            bytes_after: fs::metadata(&path).expect("a file").len(),
            ..Pruned::default()
        }
    );
}

#[tokio::test]
async fn a_pruned_journal_is_backed_up_and_restored() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(ten(&path).await);
    prune(&path, before(5));
    let copy = folder.path().join("copy");
    SqliteJournal::back_up(&path, &copy, Replace::Never, &mut |_| {}).expect("a backup");
    let other = folder.path().join("other.db");
    let ready = Restore::prepare(&copy, &other, Replace::Never, &mut |_| {}).expect("a restore");
    ready.put_in_place(day(100)).expect("restored");
    assert_eq!(left(&open(&other)).await.len(), 24);
}

#[tokio::test]
async fn the_last_ended_tasks_are_kept_by_count() {
    for (keep, expected) in [(0, 9), (1, 9), (3, 7), (10, 0), (99, 0)] {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("journal.db");
        drop(ten(&path).await);
        let pruned = prune(&path, PruneSelection { keep: Some(keep), ended_before: None });
        assert_eq!(pruned.tasks.len(), expected, "keep {keep}");
        assert_sound(&path);
    }
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    drop(ten(&path).await);
    let both = PruneSelection { keep: Some(3), ended_before: Some(day(5)) };
    assert_eq!(prune(&path, both).tasks.len(), 4);
    assert_eq!(prune(&path, PruneSelection::default()).tasks, [], "without a condition, nothing");
}

#[tokio::test]
async fn nothing_is_removed_that_an_unfinished_task_needs() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    // An unfinished task, its ended child, and an ended task of the same session.
    begin(&journal, Begun { number: 1, session: "a", ends: false, ..PLAIN }).await;
    begin(&journal, Begun { number: 2, session: "b", parent: Some(1), ..PLAIN }).await;
    begin(&journal, Begun { number: 3, session: "a", ..PLAIN }).await;
    // An ended task whose conversation an unfinished one continues in another session.
    begin(&journal, Begun { number: 4, session: "c", ..PLAIN }).await;
    begin(&journal, Begun { number: 5, session: "d", history: Some(4), ends: false, ..PLAIN })
        .await;
    // Two ended tasks that nothing needs, and the newest.
    begin(&journal, Begun { number: 6, session: "e", ..PLAIN }).await;
    begin(&journal, Begun { number: 7, session: "e2", parent: Some(6), ..PLAIN }).await;
    begin(&journal, Begun { number: 8, session: "f", ..PLAIN }).await;
    drop(journal);
    let pruned = prune(&path, before(1000));
    assert_eq!((pruned.tasks, pruned.needed), (vec![task(6), task(7)], 4));
    assert_sound(&path);
    let journal = open(&path);
    assert_eq!(tasks_of(&left(&journal).await), [1, 2, 3, 4, 5, 8].map(task));
}

#[tokio::test]
async fn an_owned_journal_is_verified_and_not_changed() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = ten(&path).await;
    let step = &mut |_| {};
    let found = SqliteJournal::verify_file(&path, step).expect("verified");
    assert_eq!((found.events, found.tasks, found.problems.len()), (40, 10, 0));
    let is_owned = |error: &OpenError| matches!(error, OpenError::Owned { .. });
    assert!(is_owned(&SqliteJournal::compact(&path, step).expect_err("it is owned")));
    let selection = before(1000);
    let refused = SqliteJournal::prune(&path, selection, PruneMode::Remove, day(1), step);
    assert!(is_owned(&refused.expect_err("it is owned")));
    let refused = SqliteJournal::repair(&path, day(1), step).expect_err("it is owned");
    assert!(refused.to_string().contains("in use by process"), "{refused}");
    assert_eq!(all(&journal).await.len(), 40);
}

#[tokio::test]
async fn compacting_gives_space_back_and_changes_nothing() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = ten(&path).await;
    let before_events = all(&journal).await;
    drop(journal);
    let connection = rusqlite::Connection::open(&path).expect("a database");
    connection
        .execute_batch(
            "CREATE TABLE junk (x); WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n
             WHERE i < 2000) INSERT INTO junk SELECT randomblob(1000) FROM n; DROP TABLE junk",
        )
        .expect("statements");
    drop(connection);
    let compacted = SqliteJournal::compact(&path, &mut |_| {}).expect("compacted");
    assert!(compacted.bytes_after + 1_000_000 < compacted.bytes_before, "{compacted:?}");
    assert_eq!(all(&open(&path)).await, before_events);
    assert_sound(&path);
}

#[tokio::test]
async fn a_repair_saves_what_can_be_read_and_lets_no_damaged_task_go_on() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    begin(&journal, Begun { number: 1, session: "a", ..PLAIN }).await;
    begin(&journal, Begun { number: 2, session: "b", ends: false, ..PLAIN }).await;
    begin(&journal, Begun { number: 3, session: "c", ends: false, ..PLAIN }).await;
    drop(journal);
    let connection = rusqlite::Connection::open(&path).expect("a database");
    // The third event of task 2 makes no sense, and the rows of the index say nonsense.
    connection
        .execute_batch(
            "UPDATE events SET data = '{' WHERE position = 7;
             UPDATE tasks SET status = 'asleep' WHERE id = 3",
        )
        .expect("statements");
    drop(connection);
    let found = SqliteJournal::verify_file(&path, &mut |_| {}).expect("verified");
    assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
    let repaired = SqliteJournal::repair(&path, day(50), &mut |_| {}).expect("repaired");
    assert_eq!((repaired.tasks, repaired.events_lost), (3, 1));
    assert_eq!(repaired.tasks_cut, [task(2)]);
    assert!(repaired.before.exists(), "the damaged file is kept");
    assert_sound(&path);
    let journal = open(&path);
    let events = all(&journal).await;
    // 4 of task 1, 2 of task 2 and its end, 3 of task 3.
    assert_eq!(events.len(), 4 + 3 + 3);
    let end = events.iter().find(|event| event.task_id == task(2) && event.body.ends_task());
    assert!(end.is_some(), "a task with lost events does not go on");
    let key = IdempotencyKey("key-3".to_owned());
    assert_eq!(journal.answered(&key).await.expect("an answer").expect("known").task_id, task(3));
}

/// Whole pages of the middle are overwritten.
#[tokio::test]
async fn a_repair_reads_around_damaged_pages() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    for number in 1..=60 {
        let session = format!("s{number}");
        begin(&journal, Begun { number, session: &session, ..PLAIN }).await;
    }
    drop(journal);
    let file = OpenOptions::new().write(true).open(&path).expect("a file");
    let pages = file.metadata().expect("a file").len() / 4096;
    for page in pages / 2..pages / 2 + 3 {
        file.write_all_at(&[0xAA; 4096], page * 4096).expect("a page");
    }
    let found = SqliteJournal::verify_file(&path, &mut |_| {}).expect("verified");
    assert!(!found.problems.is_empty());
    let repaired = SqliteJournal::repair(&path, day(50), &mut |_| {}).expect("repaired");
    assert!(repaired.events > 150, "{repaired:?}");
    assert_sound(&path);
    assert_eq!(all(&open(&path)).await.len() as u64, repaired.events);
}
