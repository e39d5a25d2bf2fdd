//! Journals of schema 3, which queued only messages of the user: they are still queued, and later
//! events can follow them.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use antiphon_core::port::{
    Append, Appended, Expected, IdempotencyKey, JournalError, JournalIndex, JournalLog, TaskIndex,
    TaskQuery, TaskSelector,
};
use antiphon_core::{
    HandlingMode, ImageBlock, InputBlock, InteractionId, MessageQueued, Position, QueuedMessage,
    Replied, ResponseStatus, Sender, Seq, TaskId, UserMessage,
};
use antiphon_sqlite::{OpenError, SqliteJournal};
use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::world::{all, note, open};

fn v3(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("journal.db");
    let connection = Connection::open(&path).expect("a file");
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .expect("a write-ahead log");
    connection.execute_batch(include_str!("../fixtures/v3-journal.sql")).expect("schema 3");
    path
}

fn task(n: u8) -> TaskId {
    TaskId::parse(&format!("01970000-0000-7000-8000-00000000000{n}")).expect("an id")
}

fn interaction(n: u128) -> InteractionId {
    InteractionId(Uuid::from_u128(0x4000_8000_0000_0000_0000 + n))
}

/// Time of the `n`th event of the fixture.
fn at(n: i64) -> DateTime<Utc> {
    let first = DateTime::from_timestamp(1_771_416_000, 0).expect("a time");
    first + TimeDelta::seconds(n) + TimeDelta::nanoseconds(n * 111)
}

/// Queued messages of the fixture.
fn waiting() -> Vec<QueuedMessage> {
    let png = ImageBlock::new("image/png", b"\x89PNG\r\n\x1a\n".to_vec()).expect("an image");
    let picture = vec![InputBlock::text("And this picture."), InputBlock::Image(png)];
    let queued = |number, (time, position), n, mode, content| QueuedMessage {
        task_id: task(number),
        position: Position(position),
        at: at(time),
        message: MessageQueued::of_user(
            interaction(n),
            mode,
            UserMessage { content, timestamp: at(time) },
        ),
    };
    let text = |text: &str| vec![InputBlock::text(text)];
    vec![
        queued(1, (3, 6), 2, HandlingMode::Queue, picture),
        queued(1, (5, 8), 3, HandlingMode::Steer, text("Be quick.")),
        queued(2, (6, 10), 4, HandlingMode::Queue, text("Wait.")),
    ]
}

async fn append(journal: &SqliteJournal, n: u8, expected: Expected) -> Result<u64, JournalError> {
    let events = vec![note("more")];
    let append = Append { task_id: task(n), expected, at: at(20), events, key: None };
    journal.append(append).await.map(|appended| appended.seq.0)
}

#[tokio::test]
async fn a_journal_of_schema_3_is_brought_up_to_date_and_loses_nothing() {
    let folder = TempDir::new().expect("a folder");
    let path = v3(&folder);
    let error = SqliteJournal::open_read_only(&path).expect_err("it is of an earlier version");
    assert!(matches!(error, OpenError::Earlier { found: 3, known: 10, .. }), "{error:?}");
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        assert_eq!(all(&journal).await.len(), 13);
        assert_eq!(journal.queued(NonZeroUsize::MAX.into()).await.expect("messages"), waiting());
        let query = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
        let tasks = journal.tasks(query).await.expect("tasks");
        let tasks: Vec<_> = tasks.into_iter().map(|task| (task.task_id, task.seq)).collect();
        assert_eq!(tasks, [(task(3), Seq(3)), (task(2), Seq(2)), (task(1), Seq(8))]);
        assert_eq!(journal.reply(interaction(2)).await, Ok(None));
        let first =
            Appended { task_id: task(1), position: Position(2), seq: Seq(2), deduplicated: true };
        let known = journal.answered(&IdempotencyKey("invoke-1".to_owned())).await;
        assert_eq!(known, Ok(Some(first)));
        assert_eq!(journal.verify().await, Ok(()));
    }
    SqliteJournal::open_read_only(&path).expect("it was brought up to date");
    let connection = Connection::open(&path).expect("a file");
    let version = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0));
    assert_eq!(version, Ok(10));
}

#[tokio::test]
async fn what_arrived_in_a_journal_of_schema_3_is_in_nobodys_way() {
    let folder = TempDir::new().expect("a folder");
    let journal = open(&v3(&folder));
    let stale = |n, expected, actual| {
        Err(JournalError::Stale { task_id: task(n), expected: Seq(expected), actual: Seq(actual) })
    };
    assert_eq!(append(&journal, 1, Expected::AtOrArrivals(Seq(6))).await, stale(1, 6, 8));
    assert_eq!(append(&journal, 1, Expected::AtOrArrivals(Seq(7))).await, Ok(9));
    assert_eq!(append(&journal, 2, Expected::AtOrArrivals(Seq(1))).await, Ok(3));
    assert_eq!(append(&journal, 2, Expected::Exists).await, Ok(4));
    let ended = Err(JournalError::Ended { task_id: task(3) });
    assert_eq!(append(&journal, 3, Expected::Exists).await, ended);
}

#[tokio::test]
async fn a_request_is_answered_in_a_journal_that_was_of_schema_3() {
    let folder = TempDir::new().expect("a folder");
    let path = v3(&folder);
    let journal = open(&path);
    let replied = Replied {
        in_reply_to: interaction(2),
        to: Sender::User,
        reply_to: None,
        status: ResponseStatus::Completed,
        result: json!({"files": 2}),
    };
    let append = Append {
        task_id: task(1),
        expected: Expected::Exists,
        at: at(20),
        events: vec![replied.clone().into()],
        key: None,
    };
    journal.append(append).await.expect("an answer");
    drop(journal);
    let journal = open(&path);
    assert_eq!(journal.reply(interaction(2)).await, Ok(Some(replied)));
    assert_eq!(journal.queued(NonZeroUsize::MAX.into()).await.expect("messages"), waiting()[1..]);
}
