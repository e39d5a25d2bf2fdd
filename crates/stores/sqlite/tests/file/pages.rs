//! How many pages appends write: what the log gains, and all that the writer writes in the long run.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use antiphon_core::port::{
    Append, Expected, JournalIndex, JournalLog, TaskFilter, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{
    AgentId, AgentState, AssistantBlock, AssistantMessage, Effect, EventBody, MessageAppended,
    SessionId, StateChanged, StatusChanged, StopReason, TaskCreated, TaskId, TaskStatus,
    ToolCallId, ToolStarted, Usage, UsageRecorded,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::DateTime;
use rusqlite::Connection;
use tempfile::TempDir;
use uuid::Uuid;

use crate::flat_cost::bytes_written;
use crate::world::note;

/// A page and its header in the log.
const FRAME_BYTES: u64 = 4096 + 24;

fn frames(path: &Path) -> u64 {
    let log = path.with_file_name("journal.db-wal");
    fs::metadata(log).expect("a log").len() / FRAME_BYTES
}

/// The ids of the program: the first part grows with time, the rest is random.
fn id(n: u64) -> Uuid {
    let random = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Uuid::from_u128((u128::from(n) << 80) | 0x7000_8000_0000_0000_0000 | u128::from(random >> 2))
}

fn task_id(n: u64) -> TaskId {
    TaskId::from(id(2 * n))
}

async fn append(journal: &SqliteJournal, n: u64, expected: Expected, events: Vec<EventBody>) {
    let at = DateTime::UNIX_EPOCH;
    let append = Append { task_id: task_id(n), expected, at, events, key: None };
    journal.append(append).await.expect("an append");
}

fn moved(n: u64, from: AgentState, to: AgentState) -> EventBody {
    StateChanged::new(AgentId(id(n)), from, to).into()
}

async fn begin(journal: &SqliteJournal, n: u64) {
    let created = TaskCreated::new("assistant", SessionId::from(id(2 * n + 1)));
    let events = vec![
        created.into(),
        note("What is wrong with it?"),
        StatusChanged::new(TaskStatus::Running).into(),
        moved(n, AgentState::Idle, AgentState::Thinking),
    ];
    append(journal, n, Expected::NoTask, events).await;
}

fn answer(text: &str) -> Vec<EventBody> {
    let usage = Usage { input_tokens: 70, output_tokens: 30, ..Usage::default() };
    let message = AssistantMessage {
        content: vec![AssistantBlock::text(text)],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: "end_turn".to_owned(),
        usage,
        model: None,
        timestamp: DateTime::UNIX_EPOCH,
    };
    let model = "scripted/instant".to_owned();
    let paid = UsageRecorded { model, usage, purpose: None };
    vec![MessageAppended::new(message).into(), paid.into()]
}

/// A chat completion: what its task appends.
async fn chat(journal: &SqliteJournal, n: u64) {
    begin(journal, n).await;
    let mut events = answer("There is nothing wrong with it: every test passes.");
    events.push(moved(n, AgentState::Thinking, AgentState::Idle));
    events.push(StatusChanged::new(TaskStatus::Completed).into());
    append(journal, n, Expected::Exists, events).await;
}

/// A step: the answer with its call, and the result.
async fn step(journal: &SqliteJournal, n: u64) {
    let mut events = answer("I look at it.");
    let tool_call_id = ToolCallId::parse("call").expect("an id");
    let tool_name = "read".to_owned();
    let effect = Effect::ReadOnly;
    events.push(ToolStarted { tool_call_id, tool_name, effect, note: None }.into());
    events.push(moved(n, AgentState::Thinking, AgentState::ToolCall));
    append(journal, n, Expected::Exists, events).await;
    let events = vec![note("a result"), moved(n, AgentState::ToolCall, AgentState::Thinking)];
    append(journal, n, Expected::Exists, events).await;
}

fn open(folder: &TempDir) -> SqliteJournal {
    SqliteJournal::open(&folder.path().join("journal.db"), SyncPolicy::Normal).expect("a journal")
}

#[tokio::test]
async fn a_chat_and_a_step_write_few_pages() {
    let folder = TempDir::new().expect("a folder");
    let (journal, path) = (open(&folder), folder.path().join("journal.db"));
    for n in 0..20 {
        chat(&journal, n).await;
    }
    let before = frames(&path);
    for n in 20..40 {
        chat(&journal, n).await;
    }
    let of_chats = frames(&path) - before;
    // Four to create it, four for the answer, and a new page now and then.
    assert!(of_chats <= 20 * 10, "{of_chats} pages for 20 chats");
    begin(&journal, 40).await;
    let before = frames(&path);
    for _ in 0..20 {
        step(&journal, 40).await;
    }
    let of_steps = frames(&path) - before;
    assert!(of_steps <= 20 * 9, "{of_steps} pages for 20 steps");
    assert!(frames(&path) < 1000, "SQLite has not begun the log again");
}

fn count(connection: &Connection, which: &str) -> u64 {
    let statement = format!("SELECT count(*) FROM tasks WHERE {which}");
    connection.query_row(&statement, (), |row| row.get(0)).expect("a count")
}

#[tokio::test]
async fn many_tasks_are_indexed_together_and_every_list_is_complete_all_the_time() {
    let folder = TempDir::new().expect("a folder");
    let (journal, path) = (open(&folder), folder.path().join("journal.db"));
    let reader = SqliteJournal::open_read_only(&path).expect("a journal");
    let file = Connection::open(&path).expect("a database");
    begin(&journal, 0).await;
    let written = bytes_written();
    for n in 1..1_200 {
        chat(&journal, n).await;
        if n % 97 != 0 {
            continue;
        }
        let tasks = async |which| {
            let query = TaskQuery { which, limit: NonZeroUsize::MAX };
            let found = reader.tasks(query).await.expect("tasks");
            found.into_iter().map(|task| task.task_id).collect::<Vec<_>>()
        };
        let all: Vec<TaskId> = (0..=n).rev().map(task_id).collect();
        assert_eq!(tasks(TaskSelector::Roots).await, all);
        assert_eq!(tasks(TaskSelector::Unfinished).await, [task_id(0)]);
        let statuses = vec![TaskStatus::Completed];
        let completed = TaskFilter { statuses, ..TaskFilter::default() };
        assert_eq!(tasks(TaskSelector::Matching(completed)).await, all[..all.len() - 1]);
        let short = task_id(n / 2).random_part().expect("a random part").to_owned();
        assert_eq!(tasks(TaskSelector::IdPrefix(short)).await, [task_id(n / 2)]);
        let sessions = reader.sessions(NonZeroUsize::MAX.into()).await.expect("sessions");
        let last: Vec<_> = sessions.into_iter().map(|session| session.last_task).collect();
        assert_eq!(last, all);
    }
    let per_chat = (bytes_written() - written) / 1_200;
    // All of it, with what SQLite copies from the log into the file.
    assert!(per_chat < 14 * FRAME_BYTES, "{per_chat} bytes for a chat");
    assert!(count(&file, "indexed") >= 600, "most tasks are indexed");
    assert!(count(&file, "NOT indexed") <= 600, "few are not");
}
