//! Saying something to a task that works; pausing it.

use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::{
    AgentState, EventBody, HandlingMode, InputBlock, Message, TaskId, TaskStatus, UserMessage,
};
use antiphon_runtime::{INBOX_OF_SENDER_MAX, Orchestrator, OrchestratorError, TaskState};

use crate::world::{Counting, events, new_task, orchestrator};

/// Two turns that take a moment, with a tool between them, and one for what is said meanwhile.
const SLOW: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ text = "One." }, { delay_ms = 50 }, { call = { name = "look", arguments = {} } }]
[[reply]]
when = { turn = 1 }
step = [{ text = "Two." }, { delay_ms = 50 }]
[[reply]]
step = [{ text = "Heard: {{last_user}}" }]
"#;

fn said(text: &str) -> UserMessage {
    UserMessage::text(text, chrono::DateTime::UNIX_EPOCH)
}

fn spoken(state: &TaskState) -> Vec<String> {
    let text = |content: &[InputBlock]| match content.first() {
        Some(InputBlock::Text(text)) => text.text.clone(),
        Some(InputBlock::Image(_)) | None => String::new(),
    };
    state
        .messages()
        .iter()
        .map(|message| match &**message {
            Message::User(user) => format!("user: {}", text(&user.content)),
            Message::Assistant(answer) => format!("model: {}", answer.text()),
            Message::ToolResult(_) => "result".to_owned(),
        })
        .collect()
}

async fn begun() -> (Arc<MemoryJournal>, Orchestrator, TaskId) {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, SLOW);
    let mut deltas = orchestrator.deltas();
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    deltas.recv().await.expect("a delta");
    (journal, orchestrator, task_id)
}

#[tokio::test]
async fn steering_is_heard_between_the_tools_and_the_next_answer() {
    let (_, orchestrator, task_id) = begun().await;
    orchestrator.send(&task_id, said("left"), HandlingMode::Steer).await.expect("queued");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(spoken(&state), ["user: go", "model: One.", "result", "user: left", "model: Two."]);
}

#[tokio::test]
async fn what_is_queued_waits_for_the_end_of_the_turn() {
    let (_, orchestrator, task_id) = begun().await;
    orchestrator.send(&task_id, said("later"), HandlingMode::Queue).await.expect("queued");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let expected =
        ["user: go", "model: One.", "result", "model: Two.", "user: later", "model: Heard: later"];
    assert_eq!(spoken(&state), expected);
    assert!(state.queue.is_empty());
    assert_eq!(state.status, TaskStatus::Completed);
}

/// A message that is accepted is read, also when it arrives between the last answer and the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_was_accepted_is_heard_or_the_task_had_ended() {
    let quick = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Heard.\" }]\n";
    let slow = quick.replace("[{ text", "[{ delay_ms = 5 }, { text");
    let (mut received, mut late) = (0, 0);
    for round in 0..200 {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        let script = if round % 10 == 0 { slow.as_str() } else { quick };
        let orchestrator = orchestrator(journal.clone(), &tools, script);
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        match orchestrator.send(&task_id, said("and this"), HandlingMode::Queue).await {
            Ok(_) => {
                let state = orchestrator.wait(&task_id).await.expect("an end");
                assert!(spoken(&state).contains(&"user: and this".to_owned()));
                assert_eq!(state.turns, 2, "{:?}", spoken(&state));
                let mut at = AgentState::Idle;
                for event in events(&*journal).await {
                    if let EventBody::StateChanged(change) = event.body {
                        for (from, to) in change.moves() {
                            assert_eq!(from, at, "no state of the step is left out");
                            assert_eq!(AgentState::validate_transition(from, to), Ok(()));
                            at = to;
                        }
                    }
                }
                received += 1;
            }
            Err(OrchestratorError::Ended { .. }) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(received + late, 200);
    assert!(received > 0, "none was in time");
}

#[tokio::test]
async fn a_mailbox_is_bounded() {
    let (_, orchestrator, task_id) = begun().await;
    orchestrator.pause(&task_id).await.expect("paused");
    for _ in 0..INBOX_OF_SENDER_MAX {
        orchestrator.send(&task_id, said("x"), HandlingMode::Queue).await.expect("queued");
    }
    let full = orchestrator.send(&task_id, said("x"), HandlingMode::Queue).await;
    assert_eq!(full, Err(OrchestratorError::InboxFull { task_id }));
}

#[tokio::test]
async fn a_paused_task_rests_until_it_is_resumed() {
    let (journal, orchestrator, task_id) = begun().await;
    orchestrator.pause(&task_id).await.expect("paused");
    orchestrator.pause(&task_id).await.expect("twice is once");
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::InputRequired);
    assert_eq!(state.turns, 1, "the answer that was being given is not thrown away");
    let before = events(&*journal).await.len();
    assert!(orchestrator.shutdown(std::time::Duration::from_secs(5)).await);
    assert_eq!(events(&*journal).await.len(), before, "nothing happens meanwhile");
    // A restart does not wake it.
    let tools = Arc::new(Counting::default());
    let second = crate::world::orchestrator(journal.clone(), &tools, SLOW);
    assert_eq!(second.recover().await.expect("a list").waiting, std::slice::from_ref(&task_id));
    second.resume(&task_id).await.expect("resumed");
    let state = second.wait(&task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Completed);
    let pauses = events(&*journal).await.into_iter().filter(
        |event| matches!(&event.body, EventBody::StatusChanged(c) if c.waiting_for.is_some()),
    );
    assert_eq!(pauses.count(), 1);
}
