//! Journals of schema 6, whose lists knew neither random parts of ids nor why a task waits for its model.

use std::num::NonZeroUsize;

use antiphon_core::port::{Append, Expected, JournalLog, TaskIndex, TaskQuery, TaskSelector};
use antiphon_core::{
    EventBody, OutageWait, SessionId, StatusChanged, TaskCreated, TaskId, TaskStatus, WaitingFor,
};
use antiphon_sqlite::SqliteJournal;
use chrono::{DateTime, Utc};
use tempfile::TempDir;

use crate::schema_8::earlier;
use crate::world::{note, open};

/// What schemas 7 and 8 added.
const ADDED: &str = "DROP TABLE checkpoints; ALTER TABLE tasks DROP COLUMN history;
    ALTER TABLE tasks DROP COLUMN history_seq; ALTER TABLE tasks DROP COLUMN history_messages;
    DROP TABLE runners; DROP INDEX tasks_by_random_part; ALTER TABLE tasks DROP COLUMN random_part;
    ALTER TABLE tasks DROP COLUMN wait; ALTER TABLE tasks DROP COLUMN imported;
    PRAGMA user_version = 6";

const WAITS: &str = "01970000-0000-7000-8000-ab12cd34ef56";
const WORKS: &str = "01970000-0000-7000-8000-99990000aaaa";

async fn write(journal: &SqliteJournal, task: &str, events: Vec<EventBody>) {
    let session = SessionId::parse("s").expect("a session");
    let events = [TaskCreated::new("dev", session).into()].into_iter().chain(events).collect();
    let (task_id, at) = (TaskId::parse(task).expect("an id"), DateTime::<Utc>::UNIX_EPOCH);
    let append = Append { task_id, expected: Expected::NoTask, at, events, key: None };
    journal.append(append).await.expect("an append");
}

#[tokio::test]
async fn a_journal_of_schema_6_gets_short_names_and_the_reasons_of_waits() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let wait = OutageWait {
        code: "overloaded".to_owned(),
        error: "try later".to_owned(),
        attempt: 3,
        next_at: DateTime::<Utc>::UNIX_EPOCH,
        superseded: false,
    };
    let journal = open(&path);
    write(&journal, WAITS, vec![wait.status(WaitingFor::Model).into(), note("and an arrival")])
        .await;
    // It waited once, and works now.
    let works = StatusChanged::new(TaskStatus::Running).into();
    write(&journal, WORKS, vec![wait.status(WaitingFor::Model).into(), works]).await;
    drop(journal);
    earlier(&path, ADDED);
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        for (start, task, expected) in [("ab12cd34", WAITS, Some(&wait)), ("9999", WORKS, None)] {
            let which = TaskSelector::IdPrefix(start.to_owned());
            let query = TaskQuery { which, limit: NonZeroUsize::MAX };
            let found = journal.tasks(query).await.expect("tasks");
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((found[0].task_id.as_str(), found[0].wait.as_ref()), (task, expected));
        }
        assert_eq!(journal.verify().await, Ok(()));
    }
}
