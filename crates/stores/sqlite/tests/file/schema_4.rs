//! Journals of schema 4, which had no index of spending: it is built from their events.

use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_core::port::{
    Append, Expected, JournalIndex, JournalLog, TaskFilter, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{
    Account, AccountSpending, CallableAgents, DayRange, EventBody, HandedOver, SessionId, Spending,
    StatusChanged, TaskCreated, TaskId, TaskStatus, ToolCallId, Usage, UsageRecorded,
};
use antiphon_sqlite::{OpenError, SqliteJournal};
use chrono::{DateTime, NaiveDate, Utc};
use tempfile::TempDir;

use crate::schema_8::earlier;
use crate::world::{note, open};

const EVER: DayRange = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };

/// What schema 5 added.
const ADDED: &str = "DROP TABLE checkpoints; ALTER TABLE tasks DROP COLUMN history;
    ALTER TABLE tasks DROP COLUMN history_seq; ALTER TABLE tasks DROP COLUMN history_messages;
    DROP INDEX tasks_by_agent; DROP INDEX tasks_by_end;
    DROP INDEX tasks_by_agent_and_end; DROP TABLE spending; DROP TABLE raised; DROP TABLE pruned;
    DROP INDEX tasks_by_random_part; ALTER TABLE tasks DROP COLUMN random_part;
    ALTER TABLE tasks DROP COLUMN wait; ALTER TABLE tasks DROP COLUMN imported;
    DROP TABLE runners;
    ALTER TABLE tasks DROP COLUMN payer; PRAGMA user_version = 4";

fn task(n: u8) -> TaskId {
    TaskId::parse(&format!("t{n}")).expect("an id")
}

fn on(day: &str) -> DateTime<Utc> {
    format!("{day}T23:59:59.999999999Z").parse().expect("a time")
}

fn paid(model: &str, input_tokens: u64) -> EventBody {
    let usage = Usage { input_tokens, ..Usage::default() };
    UsageRecorded { model: model.to_owned(), usage, purpose: None }.into()
}

fn handed_over(agent: &str) -> EventBody {
    HandedOver {
        tool_call_id: ToolCallId::parse("c").expect("an id"),
        agent: agent.to_owned(),
        model: None,
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    }
    .into()
}

async fn write(journal: &SqliteJournal, n: u8, day: &str, events: Vec<EventBody>) {
    let created = matches!(events[0], EventBody::TaskCreated(_));
    let expected = if created { Expected::NoTask } else { Expected::Exists };
    let append = Append { task_id: task(n), expected, at: on(day), events, key: None };
    journal.append(append).await.expect("an append");
}

/// A journal with spending in it.
async fn spend(path: &Path) -> Spending {
    let journal = open(path);
    let created = |agent| TaskCreated::new(agent, SessionId::parse("s").expect("a session")).into();
    write(&journal, 1, "2026-02-28", vec![created("dev"), paid("a/b", 1), paid("a/b", 2)]).await;
    write(&journal, 1, "2026-03-01", vec![paid("a/b", 4), handed_over("lead"), paid("c/d", 8)])
        .await;
    write(&journal, 2, "2026-03-01", vec![created("dev"), note("nothing was spent")]).await;
    let end = StatusChanged::new(TaskStatus::Completed).into();
    write(&journal, 3, "2026-03-01", vec![created("lead"), paid("c/d", u64::MAX), end]).await;
    journal.spending(EVER).await.expect("spending")
}

#[tokio::test]
async fn a_journal_of_schema_4_knows_what_was_spent_when_it_is_opened() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let before = spend(&path).await;
    let row = |day: &str, agent: &str, model: &str, calls, input_tokens| AccountSpending {
        account: Account {
            day: day.parse().expect("a day"),
            payer: None,
            agent: agent.to_owned(),
            model: model.to_owned(),
        },
        calls,
        usage: Usage { input_tokens, ..Usage::default() },
    };
    let expected = [
        row("2026-02-28", "dev", "a/b", 2, 3),
        row("2026-03-01", "dev", "a/b", 1, 4),
        row("2026-03-01", "lead", "c/d", 2, u64::MAX),
    ];
    assert_eq!(before.spent, expected);
    earlier(&path, ADDED);
    let error = SqliteJournal::open_read_only(&path).expect_err("it is of an earlier version");
    assert!(matches!(error, OpenError::Earlier { found: 4, known: 10, .. }), "{error:?}");
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        assert_eq!(journal.spending(EVER).await, Ok(before.clone()));
        assert_eq!(journal.verify().await, Ok(()));
        let filter = TaskFilter { agent: Some("lead".to_owned()), ..TaskFilter::default() };
        let query = TaskQuery { which: TaskSelector::Matching(filter), limit: NonZeroUsize::MAX };
        let found = journal.tasks(query).await.expect("tasks");
        let found: Vec<_> = found.into_iter().map(|it| (it.task_id, it.payer)).collect();
        assert_eq!(found, [(task(3), None), (task(1), None)]);
    }
}

#[tokio::test]
async fn what_is_spent_after_that_is_added_to_it() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    spend(&path).await;
    earlier(&path, ADDED);
    let journal = open(&path);
    write(&journal, 1, "2026-03-01", vec![paid("c/d", 1), paid("a/b", 16)]).await;
    let found = journal.spending(EVER).await.expect("spending").spent;
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.account.agent.as_str(), it.calls, it.usage.input_tokens))
        .collect();
    assert_eq!(found, [("dev", 2, 3), ("dev", 1, 4), ("lead", 1, 16), ("lead", 3, u64::MAX)]);
}
