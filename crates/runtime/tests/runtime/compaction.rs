//! Conversations that grow out of the window.

use std::num::NonZeroU32;
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{EventBody, Message, TaskLimits, sendable};
use antiphon_runtime::{NewTask, Orchestrator, RuntimeDeps, TaskState};

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
