//! Journals of an earlier schema: their events are kept, and the index is built from
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use antiphon_core::port::{
    Append, Appended, Expected, IdempotencyKey, JournalError, JournalIndex, JournalLog, TaskIndex,
    TaskQuery, TaskSelector,
};
use antiphon_core::{
    Account, AccountSpending, AgentState, DayRange, EventBody, ModelRef, Position, RunsOn, Seq,
    SessionId, SessionSummary, TaskId, TaskStatus, TaskSummary, Usage,
};
use antiphon_sqlite::{APPLICATION_ID, OpenError, SqliteJournal, SyncPolicy};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use rusqlite::Connection;
use std::num::NonZeroUsize;
use tempfile::TempDir;

use crate::world::{all, note, open};

const TALK: &str = "01970000-0000-7000-8000-00000000aaaa";
const POEM: &str = "01970000-0000-7000-8000-00000000bbbb";

/// A journal as schema 1 had it, changed by `more`.
fn v1(folder: &TempDir, more: &str) -> PathBuf {
    let path = folder.path().join("journal.db");
    let connection = Connection::open(&path).expect("a file");
    connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
        .expect("a write-ahead log");
    connection.execute_batch(include_str!("../fixtures/v1-journal.sql")).expect("schema 1");
    connection.execute_batch(more).expect("more");
    path
}

fn task(n: u8) -> TaskId {
    TaskId::parse(&format!("01970000-0000-7000-8000-00000000000{n}")).expect("an id")
}

/// Time of the `n`th append of the fixture.
fn at(n: i64) -> DateTime<Utc> {
    let first = DateTime::from_timestamp(1_771_416_000, 0).expect("a time");
    first + TimeDelta::seconds(n) + TimeDelta::nanoseconds(n * 111)
}

async fn tasks(journal: &SqliteJournal) -> Vec<TaskSummary> {
    let query = TaskQuery { which: TaskSelector::All, limit: NonZeroUsize::MAX };
    journal.tasks(query).await.expect("tasks")
}

fn expected_tasks() -> Vec<TaskSummary> {
    let blank = |n: u8, agent: &str, session: &str, created: i64| TaskSummary {
        task_id: task(n),
        agent: agent.to_owned(),
        session_id: SessionId::parse(session).expect("an id"),
        parent: None,
        root: task(n),
        payer: None,
        model: None,
        runs_on: RunsOn::default(),
        status: TaskStatus::Pending,
        waiting_for: None,
        wait: None,
        imported: None,
        title: String::new(),
        preview: None,
        seq: Seq(1),
        turns: 0,
        calls: 0,
        messages: 0,
        spent: BTreeMap::new(),
        created_at: at(created),
        last_event_at: at(created),
        ended_at: None,
    };
    let usage = Usage {
        input_tokens: 230,
        output_tokens: 35,
        cache_read_tokens: Some(107),
        cache_write_tokens: None,
    };
    vec![
        blank(4, "coder", TALK, 10),
        TaskSummary {
            parent: Some(task(2)),
            status: TaskStatus::Failed,
            title: "Find a rhyme.".to_owned(),
            seq: Seq(3),
            messages: 1,
            last_event_at: at(9),
            ended_at: Some(at(9)),
            ..blank(3, "helper", POEM, 8)
        },
        TaskSummary {
            status: TaskStatus::Running,
            title: "Write a poem.".to_owned(),
            seq: Seq(4),
            messages: 1,
            last_event_at: at(7),
            ..blank(2, "writer", POEM, 3)
        },
        TaskSummary {
            model: ModelRef::parse("anthropic/claude-x").ok(),
            status: TaskStatus::Completed,
            title: "List the files.".to_owned(),
            preview: Some("There are two: a.txt and b.txt.".to_owned()),
            seq: Seq(15),
            turns: 2,
            calls: 1,
            messages: 4,
            spent: BTreeMap::from([("anthropic/claude-x".to_owned(), usage)]),
            last_event_at: at(6),
            ended_at: Some(at(6)),
            ..blank(1, "coder", TALK, 0)
        },
    ]
}

#[tokio::test]
async fn a_journal_of_schema_1_knows_what_was_spent() {
    let folder = TempDir::new().expect("a folder");
    let journal = open(&v1(&folder, ""));
    let days = DayRange { from: NaiveDate::MIN, to: NaiveDate::MAX };
    let account = Account {
        day: at(0).date_naive(),
        payer: None,
        agent: "coder".to_owned(),
        model: "anthropic/claude-x".to_owned(),
    };
    let usage = Usage {
        input_tokens: 230,
        output_tokens: 35,
        cache_read_tokens: Some(107),
        cache_write_tokens: None,
    };
    let found = journal.spending(days).await.expect("spending");
    assert_eq!(found.spent, [AccountSpending { account, calls: 2, usage }]);
}

#[tokio::test]
async fn a_journal_of_schema_1_has_everything_at_hand_when_it_is_opened() {
    let folder = TempDir::new().expect("a folder");
    let path = v1(&folder, "");
    // Twice: the second time there is nothing to migrate.
    for _ in 0..2 {
        let journal = open(&path);
        assert_eq!(tasks(&journal).await, expected_tasks());
        let which = TaskSelector::IdPrefix("00000000000".to_owned());
        let query = TaskQuery { which, limit: NonZeroUsize::MAX };
        assert_eq!(journal.tasks(query).await.expect("tasks").len(), 4, "by their random parts");
        let session = |session: &str, title: &str, last, status, created, updated| SessionSummary {
            session_id: SessionId::parse(session).expect("an id"),
            title: title.to_owned(),
            tasks: 2,
            last_task: task(last),
            status,
            created_at: at(created),
            updated_at: at(updated),
        };
        let expected = [
            session(TALK, "List the files.", 4, TaskStatus::Pending, 0, 10),
            session(POEM, "Write a poem.", 3, TaskStatus::Failed, 3, 9),
        ];
        assert_eq!(journal.sessions(NonZeroUsize::MAX.into()).await.expect("sessions"), expected);
        let agents = journal.agents(NonZeroUsize::MAX.into()).await.expect("agents");
        let agents: Vec<_> = agents
            .iter()
            .map(|live| (live.agent.as_str(), live.task_id.clone(), live.status.state))
            .collect();
        assert_eq!(agents, [("writer", task(2), AgentState::Thinking)]);
        assert_eq!(journal.verify().await, Ok(()));
    }
    let connection = Connection::open(&path).expect("a file");
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    assert_eq!(pragma("user_version"), Ok(10));
    assert_eq!(pragma("application_id"), Ok(APPLICATION_ID));
    let broken: i64 = connection
        .query_row("SELECT count(*) FROM pragma_foreign_key_check", (), |row| row.get(0))
        .expect("a count");
    assert_eq!(broken, 0);
}

#[tokio::test]
async fn a_journal_of_schema_1_keeps_its_events_and_keys_and_goes_on() {
    let folder = TempDir::new().expect("a folder");
    let journal = open(&v1(&folder, ""));
    let events = all(&journal).await;
    assert_eq!(events.len(), 23);
    let last: Vec<(Seq, &str)> =
        events.iter().map(|event| (event.seq, event.body.event_type())).collect();
    assert_eq!(last[16], (Seq(15), "status_changed"));
    assert_eq!(last[22], (Seq(1), "task_created"));

    let append = |n, expected, key: Option<&str>| Append {
        task_id: task(n),
        expected: Expected::At(Seq(expected)),
        at: at(20),
        events: vec![note("more")],
        key: key.map(|key| IdempotencyKey(key.to_owned())),
    };
    let appended = |n, position, seq, deduplicated| {
        Ok(Appended { task_id: task(n), position: Position(position), seq: Seq(seq), deduplicated })
    };
    assert_eq!(journal.append(append(4, 1, Some("invoke-1"))).await, appended(1, 2, 2, true));
    assert_eq!(journal.append(append(4, 1, None)).await, appended(4, 24, 2, false));
    assert_eq!(journal.append(append(2, 4, None)).await, appended(2, 25, 5, false));
    let ended = Err(JournalError::Ended { task_id: task(1) });
    assert_eq!(journal.append(append(1, 15, None)).await, ended);
    let found = tasks(&journal).await;
    assert_eq!((found[0].seq, found[0].title.as_str()), (Seq(2), "more"));
    assert_eq!((found[2].seq, found[2].messages), (Seq(5), 2));
}

/// An undecodable event stays as it is; everything else is there.
#[tokio::test]
async fn an_event_that_makes_no_sense_keeps_no_journal_from_being_opened() {
    let folder = TempDir::new().expect("a folder");
    let damage = "UPDATE events SET data = '{\"agent\":' WHERE position = 9;
                  UPDATE events SET type = 'no_such_thing' WHERE position = 17;
                  UPDATE events SET data = 'x' WHERE position = 21;";
    let journal = open(&v1(&folder, damage));
    let found = tasks(&journal).await;
    let glance: Vec<_> = found.iter().map(|task| (task.status, task.seq, &*task.title)).collect();
    let expected = [
        (TaskStatus::Pending, Seq(1), ""),
        (TaskStatus::Failed, Seq(3), ""),
        (TaskStatus::Running, Seq(4), "Write a poem."),
        // Its last status cannot be decoded, but it had ended.
        (TaskStatus::Failed, Seq(15), "List the files."),
    ];
    assert_eq!(glance, expected);
    let read = antiphon_core::port::Read {
        task_id: Some(task(1)),
        after: Position(0),
        limit: NonZeroUsize::MAX,
    };
    let error = journal.read(read).await.expect_err("one of its events makes no sense");
    let EventBody::TaskCreated(_) = &all_of(&journal, 4).await[0] else { panic!("{found:?}") };
    assert_eq!(
        error.to_string().split(", expected").next(),
        Some("the journal is damaged at position 17: unknown event type `no_such_thing`")
    );
}

async fn all_of(journal: &SqliteJournal, n: u8) -> Vec<EventBody> {
    let read = antiphon_core::port::Read {
        task_id: Some(task(n)),
        after: Position(0),
        limit: NonZeroUsize::MAX,
    };
    let page = journal.read(read).await.expect("a page");
    page.events.into_iter().map(|event| event.body).collect()
}

#[test]
fn a_journal_of_schema_1_cannot_be_read_without_being_opened_once() {
    let folder = TempDir::new().expect("a folder");
    let path = v1(&folder, "");
    let error = SqliteJournal::open_read_only(&path).expect_err("it is of an earlier version");
    assert!(matches!(error, OpenError::Earlier { found: 1, known: 10, .. }), "{error:?}");
    assert!(error.to_string().contains("`antiphon run`"), "{error}");
    drop(open(&path));
    SqliteJournal::open_read_only(&path).expect("it was brought up to date");
}

/// A migration that fails leaves the file as it was.
#[test]
fn a_migration_that_fails_is_undone() {
    let folder = TempDir::new().expect("a folder");
    // An existing table makes the second migration fail.
    let path = v1(&folder, "CREATE TABLE agents (x);");
    let error =
        SqliteJournal::open(&path, SyncPolicy::Full).expect_err("there is something in the way");
    assert!(error.to_string().contains("agents"), "{error}");
    let connection = Connection::open(Path::new(&path)).expect("a file");
    let version: i32 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a version");
    assert_eq!(version, 1);
    connection.execute_batch("DROP TABLE agents").expect("out of the way");
    drop(connection);
    drop(open(&path));
}
