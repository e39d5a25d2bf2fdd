//! Journals of schema 9, whose approvals did not know the root of their tree.

use antiphon_core::port::{
    Append, ApprovalQuery, ApprovalSelector, Expected, JournalIndex as _, JournalLog as _, Rule,
};
use antiphon_core::{
    ApprovalId, ApprovalRequested, EventBody, RawJson, SessionId, TaskCreated, TaskId, ToolCallId,
};
use antiphon_sqlite::SqliteJournal;
use chrono::DateTime;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::world::{open, task};

/// Makes a journal of schema 9 of one of schema 10.
const DOWN: &str = include_str!("../fixtures/from-10-to-9.sql");

/// Creates a task that asks for an approval with its number.
async fn ask(journal: &SqliteJournal, number: u64, root: Option<TaskId>) {
    let session_id = SessionId::parse("s").expect("a session");
    let created = TaskCreated { parent: root.clone(), root, ..TaskCreated::new("dev", session_id) };
    let request = ApprovalRequested {
        approval_id: id(number),
        tool_call_id: ToolCallId::parse("call").expect("an id"),
        tool_name: "write".to_owned(),
        arguments: RawJson::empty_object(),
        reason: "it writes".to_owned(),
        rule: Rule("write(*)".to_owned()),
        expires_at: None,
        boot_until: None,
        question: None,
    };
    let events: Vec<EventBody> = vec![created.into(), request.into()];
    let (task_id, at) = (task(number), DateTime::UNIX_EPOCH);
    let append = Append { task_id, expected: Expected::NoTask, at, events, key: None };
    journal.append(append).await.expect("an append");
}

fn id(number: u64) -> ApprovalId {
    ApprovalId::parse(&format!("approval-{number}")).expect("an id")
}

async fn pending_in(journal: &SqliteJournal, root: u64) -> Vec<ApprovalId> {
    let query: ApprovalQuery = ApprovalSelector::PendingIn(task(root)).into();
    let found = journal.approvals(query).await.expect("a list");
    found.into_iter().map(|approval| approval.approval_id).collect()
}

#[tokio::test]
async fn a_journal_of_schema_9_finds_its_pending_approvals_by_their_tree() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    for (number, root) in [(1, None), (2, None), (3, Some(task(1)))] {
        ask(&journal, number, root).await;
    }
    drop(journal);
    let connection = Connection::open(&path).expect("a file");
    connection.execute_batch(DOWN).expect("schema 9");
    drop(connection);
    let journal = open(&path);
    ask(&journal, 4, Some(task(1))).await;
    assert_eq!(pending_in(&journal, 1).await, [id(1), id(3), id(4)]);
    assert_eq!(pending_in(&journal, 2).await, [id(2)]);
    assert_eq!(journal.verify().await, Ok(()));
}
