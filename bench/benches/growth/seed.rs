//! Fills a journal with tasks, as chat completions leave them.

use std::path::Path;
use std::sync::Arc;

use antiphon_bench::Error;
use antiphon_core::port::{Append, Expected, JournalLog as _};
use antiphon_core::{
    AgentId, AgentState, AssistantBlock, AssistantMessage, EventBody, MessageAppended, ModelRef,
    SessionId, StateChanged, StatusChanged, StopReason, TaskCreated, TaskId, TaskStatus, Usage,
    UsageRecorded, UserMessage, WaitingFor,
};
use antiphon_sqlite::{SqliteJournal, SyncPolicy};
use chrono::Utc;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Appends that wait at a time: they share a transaction.
const AT_ONCE: usize = 512;

/// How a task is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has ended.
    Completed,
    /// A user has to resume it.
    Paused,
}

/// Adds tasks to the journal at `path`. Returns the id of the last one.
pub(crate) fn seed(path: &Path, count: usize, left: Left) -> Result<TaskId, Error> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let journal = Arc::new(SqliteJournal::open(path, SyncPolicy::Normal)?);
    let last = runtime.block_on(async {
        let (mut adding, mut last) = (JoinSet::new(), None);
        for _ in 0..count {
            if adding.len() == AT_ONCE {
                last = adding.join_next().await.transpose()?.transpose()?.or(last);
            }
            let journal = Arc::clone(&journal);
            adding.spawn(async move { add(&journal, left).await });
        }
        while let Some(added) = adding.join_next().await {
            last = Some(added??);
        }
        last.ok_or_else(|| Error::from("no task was added"))
    })?;
    Ok(last)
}

async fn add(journal: &SqliteJournal, left: Left) -> Result<TaskId, Error> {
    let (task_id, session) = (TaskId::from(Uuid::now_v7()), SessionId::from(Uuid::now_v7()));
    let (agent_id, at) = (AgentId(Uuid::now_v7()), Utc::now());
    let model = "upstream/steps-0";
    let created = TaskCreated {
        model: Some(ModelRef::parse(model)?),
        ..TaskCreated::new("assistant", session)
    };
    let question = UserMessage::text("What is wrong with it?", at);
    let events = vec![
        created.into(),
        MessageAppended::new(question).into(),
        StatusChanged::new(TaskStatus::Running).into(),
        StateChanged::new(agent_id, AgentState::Idle, AgentState::Thinking).into(),
    ];
    let append =
        Append { task_id: task_id.clone(), expected: Expected::NoTask, at, events, key: None };
    journal.append(append).await?;
    let events = match left {
        Left::Completed => answer(agent_id),
        Left::Paused => {
            let waiting_for = Some(WaitingFor::Resume);
            let status = StatusChanged::new(TaskStatus::InputRequired);
            vec![StatusChanged { waiting_for, ..status }.into()]
        }
    };
    let append =
        Append { task_id: task_id.clone(), expected: Expected::Exists, at, events, key: None };
    journal.append(append).await?;
    Ok(task_id)
}

fn answer(agent_id: AgentId) -> Vec<EventBody> {
    let usage = Usage { input_tokens: 20, output_tokens: 22, ..Usage::default() };
    let message = AssistantMessage {
        content: vec![AssistantBlock::text("There is nothing wrong with it.")],
        stop_reason: StopReason::EndTurn,
        raw_stop_reason: "stop".to_owned(),
        usage,
        model: None,
        timestamp: Utc::now(),
    };
    let moved = |from, to| StateChanged::new(agent_id, from, to).into();
    vec![
        MessageAppended::new(message).into(),
        UsageRecorded { model: "upstream/steps-0".to_owned(), usage, purpose: None }.into(),
        moved(AgentState::Thinking, AgentState::ToolCall),
        moved(AgentState::ToolCall, AgentState::Reflecting),
        moved(AgentState::Reflecting, AgentState::Idle),
        StatusChanged::new(TaskStatus::Completed).into(),
    ]
}
