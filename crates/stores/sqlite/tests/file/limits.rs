//! Limits of a journal.

use antiphon_core::port::{
    Expected, JournalError, JournalIndex, JournalLog, Rule, TaskIndex, TaskQuery, TaskSelector,
};
use antiphon_core::{ApprovalId, ApprovalRequested, RawJson, Seq, ToolCallId};
use antiphon_sqlite::{APPEND_BYTES_MAX, CACHED_TASKS_MAX, SqliteJournal, SyncPolicy};
use std::num::NonZeroUsize;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::world::{add, all, append, creation, note, open, task};

#[tokio::test]
async fn an_append_that_is_too_long_is_invalid_and_nothing_of_it_is_written() {
    let folder = TempDir::new().expect("a folder");
    let journal = open(&folder.path().join("journal.db"));
    journal.append(creation(1)).await.expect("an append");
    let megabyte = format!("{{\"text\":\"{}\"}}", "x".repeat(1024 * 1024));
    let request = ApprovalRequested {
        approval_id: ApprovalId::parse("approval").expect("an id"),
        tool_call_id: ToolCallId::parse("call").expect("an id"),
        tool_name: "write".to_owned(),
        arguments: RawJson::parse(&megabyte).expect("JSON"),
        reason: "it is long".to_owned(),
        rule: Rule("write(*)".to_owned()),
        expires_at: None,
        boot_until: None,
        question: None,
    };
    let events = vec![request.into(); APPEND_BYTES_MAX / (1024 * 1024)];
    let refused = journal.append(append(1, Expected::At(Seq(2)), events)).await;
    let Err(JournalError::Invalid { reason, .. }) = &refused else { panic!("it is too long") };
    assert!(reason.contains("67108864 bytes"), "{reason}");
    assert_eq!(all(&journal).await.len(), 2);
    add(&journal, 1, Seq(2), "short").await.expect("an append");
}

/// More active tasks than the writer caches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_no_longer_at_hand_goes_on_from_where_it_was() {
    const TASKS: u64 = CACHED_TASKS_MAX as u64 + 100;
    const SOME: u64 = 200;
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("journal.db");
    let journal = Arc::new(SqliteJournal::open(&path, SyncPolicy::Normal).expect("a journal"));
    for (round, tasks) in [(0, TASKS), (1, SOME)] {
        let mut writers = JoinSet::new();
        for number in 0..tasks {
            let journal = Arc::clone(&journal);
            writers.spawn(async move {
                let next = match round {
                    0 => creation(number),
                    _ => append(number, Expected::At(Seq(2)), vec![note("more")]),
                };
                journal.append(next).await
            });
        }
        while let Some(answer) = writers.join_next().await {
            answer.expect("no panic").expect("an append");
        }
    }
    let query = TaskQuery { which: TaskSelector::Unfinished, limit: NonZeroUsize::MAX };
    let found = journal.tasks(query).await.expect("tasks");
    assert_eq!(found.len() as u64, TASKS);
    for summary in &found {
        let gone_on = (0..SOME).any(|number| summary.task_id == task(number));
        let expected = if gone_on { (Seq(3), 2) } else { (Seq(2), 1) };
        assert_eq!((summary.seq, summary.messages), expected, "{}", summary.task_id);
        assert_eq!(summary.title, "the first");
    }
    let sessions = journal.sessions(NonZeroUsize::MAX.into()).await.expect("sessions");
    assert_eq!(sessions.iter().map(|session| session.tasks).collect::<Vec<_>>(), [TASKS]);
}
