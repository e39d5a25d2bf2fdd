//! Conversations that go through several tasks, and the last status of a task.

use antiphon_core::port::{Expected, HistoryExtent, JournalError};
use antiphon_core::{
    Compacted, Event, EventBody, HistoryRef, Seq, SessionId, StatusChanged, TaskCreated, TaskStatus,
};
use serde_json::json;
use uuid::Uuid;

use super::sample_events::{answered, asked};
use super::test_journal::{TestJournal, at, draft, status, task};
use crate::suite::{Finding, Outcome, equal};

/// The first task, and the two that go on with its conversation, one after the other.
const TASKS: u64 = 3;

pub(super) async fn a_history_goes_through_every_task_it_continues(
    journal: TestJournal,
) -> Outcome {
    talk(&journal, false).await?;
    let history = journal.history(until(TASKS, 99), HistoryExtent::All).await?;
    equal("the first message", &history.first, &0)?;
    equal("the conversation", &history.events, &messages(&journal, TASKS).await?)?;
    let missing = journal.as_dyn().history(until(9, 1), HistoryExtent::All).await;
    let is_refused = matches!(missing, Err(JournalError::Corrupt { .. }));
    equal("whether a history without its task is refused", &is_refused, &true)
}

/// Also when the next task goes on with less than the whole of it.
pub(super) async fn a_history_ends_with_the_event_it_names(journal: TestJournal) -> Outcome {
    talk(&journal, false).await?;
    let mut expected = messages(&journal, 1).await?;
    expected.pop();
    let history = journal.history(until(1, 2), HistoryExtent::All).await?;
    equal("the conversation up to a message", &history.events, &expected)?;
    journal.write(draft(&task(4), Expected::NoTask, vec![created(Some(until(1, 2)))])).await?;
    journal.write(draft(&task(4), at(1), vec![asked("or else")])).await?;
    let history = journal.history(until(4, 2), HistoryExtent::All).await?;
    expected.extend(journal.of(&task(4)).await?.into_iter().skip(1));
    equal("the conversation that forks there", &history.events, &expected)
}

pub(super) async fn a_recent_history_begins_with_what_the_compaction_kept(
    journal: TestJournal,
) -> Outcome {
    talk(&journal, true).await?;
    let all = journal.history(until(TASKS, 99), HistoryExtent::All).await?;
    equal("the first message of all", &all.first, &0)?;
    let recent = journal.history(until(TASKS, 99), HistoryExtent::Recent).await?;
    // Each task has two messages; the last one compacted them before its answer.
    equal("the first recent message", &recent.first, &3)?;
    let expected = messages(&journal, TASKS).await?;
    equal("the recent messages", &recent.events.as_slice(), &&expected[3..])?;
    let before = journal.history(until(TASKS - 1, 99), HistoryExtent::Recent).await?;
    equal("what is recent without a compaction", &before.first, &0)
}

pub(super) async fn the_last_status_of_a_task_has_its_detail(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    equal("a status before the first", &journal.last_status(1).await?, &None)?;
    journal.write(draft(&task(1), at(1), vec![status(TaskStatus::Running)])).await?;
    journal.write(draft(&task(1), at(2), vec![asked("what?")])).await?;
    let expected = Some(StatusChanged::new(TaskStatus::Running));
    equal("a status behind which there is more", &journal.last_status(1).await?, &expected)?;
    let detail = Some(json!({ "answer": [1, 2] }));
    let done = StatusChanged { detail, ..StatusChanged::new(TaskStatus::Completed) };
    journal.write(draft(&task(1), at(3), vec![done.clone().into()])).await?;
    equal("the last status", &journal.last_status(1).await?, &Some(done))?;
    equal("the status of no task", &journal.last_status(2).await?, &None)
}

/// Three tasks with a question and an answer each. With `compacts`, the last one keeps what is behind its third message.
async fn talk(journal: &TestJournal, compacts: bool) -> Outcome {
    for n in 1..=TASKS {
        let before = (n > 1).then(|| until(n - 1, 99));
        journal.write(draft(&task(n), Expected::NoTask, vec![created(before)])).await?;
        let mut events = vec![asked(&format!("question {n}"))];
        if compacts && n == TASKS {
            let summary = "in short".to_owned();
            events.push(Compacted { summary, kept_from: 3 }.into());
        }
        events.push(answered(&format!("answer {n}")));
        for (seq, event) in (1..).zip(events) {
            journal.write(draft(&task(n), at(seq), vec![event])).await?;
        }
    }
    Ok(())
}

fn created(history: Option<HistoryRef>) -> EventBody {
    let session_id = SessionId::from(Uuid::from_u128(1));
    TaskCreated { history, ..TaskCreated::new("scribe", session_id) }.into()
}

fn until(n: u64, seq: u64) -> HistoryRef {
    HistoryRef { task_id: task(n), seq: Seq(seq) }
}

/// The messages and the compaction of the first `n` tasks, filtered from all events.
async fn messages(journal: &TestJournal, n: u64) -> Result<Vec<Event>, Finding> {
    let mut events = journal.all().await?;
    let tasks: Vec<_> = (1..=n).map(task).collect();
    events.retain(|event| {
        let is_part = matches!(event.body, EventBody::MessageAppended(_) | EventBody::Compacted(_));
        tasks.contains(&event.task_id) && is_part
    });
    Ok(events)
}
