//! Conversations that grow out of the window.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{EventBody, HistoryRef, Message, TaskAccess, TaskLimits, TaskStatus, sendable};
use antiphon_runtime::{NewTask, Orchestrator, PriorHistory, RuntimeDeps, TaskState};

use crate::world::{Counting, Scripted, events, new_task, world};

/// Looks at something long, again and again, and sums up when it is asked to. Says that it is
/// too much when there are so many answers in what it reads.
fn script(overflow_at: usize) -> String {
    let long = "x".repeat(3_000);
    format!(
        r###"
name = "test"
[[reply]]
when = {{ last_user_contains = "about to be shortened" }}
step = [{{ text = "## Goal\nGo far." }}]
[[reply]]
when = {{ turn = {overflow_at} }}
step = [{{ error = {{ kind = "context_overflow", message = "too long" }} }}]
[[reply]]
step = [{{ call = {{ name = "look", arguments = {{ at = "{{{{turn}}}} {long}" }} }} }}]
"###
    )
}

async fn compacted(script: String, window_tokens: u64) -> (TaskState, Vec<EventBody>) {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let models = Scripted { script, window_tokens: Some(window_tokens) };
    let world = world(journal.clone(), &tools, "");
    let orchestrator = Orchestrator::new(RuntimeDeps { models: Arc::new(models), ..world });
    let limits = TaskLimits { turns_max: NonZeroU32::new(12), ..TaskLimits::default() };
    let task = NewTask { limits, ..new_task("The request, word for word.") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    (state, events(&*journal).await.into_iter().map(|event| event.body).collect())
}

fn summaries(events: &[EventBody]) -> Vec<&String> {
    let mut summaries = Vec::new();
    for body in events {
        if let EventBody::Compacted(compacted) = body {
            summaries.push(&compacted.summary);
        }
    }
    summaries
}

#[tokio::test]
async fn a_long_conversation_is_summed_up_before_it_overflows() {
    let (state, events) = compacted(script(100), 11_000).await;
    // As far as it may: nothing else stopped it.
    assert_eq!(state.detail.clone().expect("a reason")["limit"]["limit"], "turns");
    let summaries = summaries(&events);
    assert!(summaries.len() >= 2, "{}", summaries.len());
    for summary in summaries {
        assert!(summary.contains("Go far."), "{summary}");
        assert!(summary.contains("The request, word for word."), "{summary}");
    }
    assert!(state.conversation.tokens() < 11_000);
    // The journal keeps everything; what the model reads is whole.
    assert_eq!(state.messages().len(), 1 + 12 * 2);
    let view = state.conversation.view();
    assert_eq!(sendable(&view), view.to_vec(), "no call is parted from its result");
    assert!(view.len() < state.messages().len());
    assert!(matches!(&*view[0], Message::User(_)));
}

#[tokio::test]
async fn an_unexpected_overflow_is_compacted() {
    // The window is thought to be larger than the model's really is.
    let (state, events) = compacted(script(5), 1_000_000).await;
    assert_eq!(state.detail.clone().expect("a reason")["limit"]["limit"], "turns");
    let count = summaries(&events).len();
    assert!(count >= 2, "{count}");
    let paid = events
        .iter()
        .filter(|body| matches!(body, EventBody::UsageRecorded(paid) if paid.purpose.is_some()));
    assert_eq!(paid.count(), count);
    assert_eq!(state.turns, 12);
}

#[tokio::test]
async fn a_task_that_only_compacts_ends_with_a_summary_that_the_next_task_reads() {
    let script = r###"
name = "test"
[[reply]]
when = { last_user_contains = "about to be shortened" }
step = [{ text = "## Goal\nGo far." }]
[[reply]]
step = [{ text = "I read {{turn}} answers." }]
"###;
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = Orchestrator::new(world(journal.clone(), &tools, script));
    let ended = async |task: NewTask| {
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        orchestrator.wait(&task_id).await.expect("an end")
    };
    let after = |state: &TaskState| {
        PriorHistory::Task(HistoryRef { task_id: state.task_id.clone(), seq: state.seq })
    };
    let only_compacts =
        |before| NewTask { before, message: None, access: TaskAccess::CompactOnly, ..new_task("") };
    let first = ended(new_task("one")).await;
    let second = ended(NewTask { before: after(&first), ..new_task("two") }).await;
    assert_eq!(second.detail, Some("I read 1 answers.".into()));
    let compacted = ended(only_compacts(after(&second))).await;
    let summary = "[What was said before, in short]\n\n## Goal\nGo far.";
    assert_eq!(compacted.status, TaskStatus::Completed);
    assert_eq!(compacted.detail, Some(summary.into()));
    assert_eq!(compacted.conversation.view().len(), 1);
    // There is nothing more to shorten: no model is called.
    let again = ended(only_compacts(after(&compacted))).await;
    assert_eq!(
        (again.status, again.usage()),
        (TaskStatus::Completed, antiphon_core::Usage::default())
    );
    let third = ended(NewTask { before: after(&again), ..new_task("three") }).await;
    assert_eq!(third.detail, Some("I read 0 answers.".into()));
    assert_eq!(
        summaries(&events(&*journal).await.into_iter().map(|event| event.body).collect::<Vec<_>>()),
        [summary]
    );
}
