//! Journals of schema 8, where usage, runners and states of agents had tables of their own and every task was indexed at
//! once.

use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_core::port::{
    Append, Expected, JournalIndex, JournalLog, TaskFilter, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentId, AgentState, EventBody, LiveAgent, RunnerConfig, SessionId, SessionSummary,
    StateChanged, StatusChanged, TaskCreated, TaskId, TaskStatus, TaskSummary, Usage,
    UsageRecorded,
};
use antiphon_sqlite::SqliteJournal;
use chrono::{DateTime, Utc};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::world::{note, open};

/// Makes a journal of schema 8 of one of the latest.
const DOWN: &str = concat!(
    include_str!("../fixtures/from-10-to-9.sql"),
    include_str!("../fixtures/from-9-to-8.sql")
);

/// Makes the journal at `path` one of schema 8, and then runs `more`.
pub(crate) fn earlier(path: &Path, more: &str) {
    let connection = Connection::open(path).expect("a file");
    connection.execute_batch(DOWN).expect("schema 8");
    connection.execute_batch(more).expect("an earlier schema");
}

async fn write(journal: &SqliteJournal, task: &str, created: TaskCreated, events: Vec<EventBody>) {
    let events = [created.into()].into_iter().chain(events).collect();
    let (task_id, at) = (TaskId::parse(task).expect("an id"), DateTime::<Utc>::UNIX_EPOCH);
    let append = Append { task_id, expected: Expected::NoTask, at, events, key: None };
    journal.append(append).await.expect("an append");
}

fn created(agent: &str, session: &str) -> TaskCreated {
    TaskCreated::new(agent, SessionId::parse(session).expect("a session"))
}

fn paid(model: &str, input_tokens: u64, cache_read_tokens: Option<u64>) -> EventBody {
    let usage = Usage { input_tokens, cache_read_tokens, ..Usage::default() };
    UsageRecorded { model: model.to_owned(), usage, purpose: None }.into()
}

fn thinks() -> EventBody {
    let agent_id = AgentId(Uuid::from_u128(7));
    StateChanged::new(agent_id, AgentState::Idle, AgentState::Thinking).into()
}

/// Every list.
async fn lists(
    journal: &SqliteJournal,
) -> (Vec<Vec<TaskSummary>>, Vec<SessionSummary>, Vec<LiveAgent>) {
    let agent = TaskFilter { agent: Some("dev".to_owned()), ..TaskFilter::default() };
    let statuses = vec![TaskStatus::Completed, TaskStatus::Running];
    let statuses = TaskFilter { statuses, ..TaskFilter::default() };
    let selectors = [
        TaskSelector::All,
        TaskSelector::Roots,
        TaskSelector::Unfinished,
        TaskSelector::Session(SessionId::parse("s").expect("a session")),
        TaskSelector::Tree(TaskId::parse("first").expect("an id")),
        TaskSelector::IdPrefix("f".to_owned()),
        TaskSelector::Matching(agent),
        TaskSelector::Matching(statuses),
    ];
    let mut tasks = Vec::new();
    for which in selectors {
        let query = TaskQuery { which, limit: NonZeroUsize::MAX };
        tasks.push(journal.tasks(query).await.expect("tasks"));
    }
    let sessions = journal.sessions(NonZeroUsize::MAX.into()).await.expect("sessions");
    (tasks, sessions, journal.agents(NonZeroUsize::MAX.into()).await.expect("agents"))
}

#[tokio::test]
async fn a_journal_of_schema_8_keeps_all_that_its_tables_knew() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = open(&path);
    let spent = [paid("a/b", u64::MAX, None), paid("a/b", 1, Some(3)), paid("c/d", 0, Some(0))];
    write(&journal, "first", created("dev", "s"), spent.to_vec()).await;
    let config = json!({ "peer": "far" });
    let runner = Some(RunnerConfig { kind: "remote".to_owned(), config });
    let first = TaskId::parse("first").ok();
    let child = TaskCreated { runner, parent: first.clone(), root: first, ..created("dev", "t") };
    write(&journal, "second", child, vec![thinks(), note("works")]).await;
    let end = StatusChanged::new(TaskStatus::Completed).into();
    write(&journal, "third", created("lead", "s"), vec![thinks(), paid("a/b", 1, None), end]).await;
    let before = lists(&journal).await;
    assert_eq!(before.0[1].len(), 2, "two roots");
    assert_eq!((before.1.len(), before.2.len()), (2, 1), "two sessions, one live agent");
    drop(journal);
    earlier(&path, "");
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        assert_eq!(lists(&journal).await, before);
        assert_eq!(journal.verify().await, Ok(()));
        drop(journal);
        let found = SqliteJournal::verify_file(&path, &mut |_| {}).expect("a journal");
        assert_eq!((found.tasks, found.problems), (3, Vec::new()));
    }
}
