//! Journals of schema 7, whose rows did not say which conversation a task continues.

use antiphon_core::port::{Append, Expected, HistoryExtent, JournalLog};
use antiphon_core::{EventBody, HistoryRef, Seq, SessionId, TaskCreated, TaskId};
use antiphon_sqlite::SqliteJournal;
use chrono::{DateTime, Utc};
use tempfile::TempDir;

use crate::schema_8::earlier;
use crate::world::{note, open};

/// What schema 8 added.
const ADDED: &str = "DROP TABLE checkpoints; ALTER TABLE tasks DROP COLUMN history;
    ALTER TABLE tasks DROP COLUMN history_seq; ALTER TABLE tasks DROP COLUMN history_messages;
    PRAGMA user_version = 7";

fn until(task: &str, seq: u64) -> HistoryRef {
    HistoryRef { task_id: TaskId::parse(task).expect("an id"), seq: Seq(seq) }
}

async fn write(journal: &SqliteJournal, task: &str, history: Option<HistoryRef>) {
    let session_id = SessionId::parse("s").expect("a session");
    let created = TaskCreated { history, ..TaskCreated::new("dev", session_id) };
    let said = ["question", "answer"].map(|word| note(&format!("{word} of {task}")));
    let events = [EventBody::from(created)].into_iter().chain(said).collect();
    let (task_id, at) = (TaskId::parse(task).expect("an id"), DateTime::<Utc>::UNIX_EPOCH);
    let append = Append { task_id, expected: Expected::NoTask, at, events, key: None };
    journal.append(append).await.expect("an append");
}

#[tokio::test]
async fn a_journal_of_schema_7_knows_which_conversations_its_tasks_continue() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    write(&journal, "first", None).await;
    write(&journal, "second", Some(until("first", 2))).await;
    write(&journal, "third", Some(until("second", 3))).await;
    let mut expected = Vec::new();
    for task in ["first", "second", "third"] {
        let read = journal.history(until(task, 99), HistoryExtent::All).await.expect("a history");
        expected.push(read);
    }
    assert_eq!(expected.iter().map(|read| read.events.len()).collect::<Vec<_>>(), [2, 3, 5]);
    drop(journal);
    earlier(&path, ADDED);
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        for (task, expected) in ["first", "second", "third"].into_iter().zip(&expected) {
            let found = journal.history(until(task, 99), HistoryExtent::All).await;
            assert_eq!(found.as_ref(), Ok(expected));
        }
        assert_eq!(journal.verify().await, Ok(()));
    }
}
