//! What a task goes through.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::IdempotencyKey;
use antiphon_core::{AgentState, Event, EventBody, Message, TaskLimits, TaskStatus};
use antiphon_runtime::{NewTask, PriorHistory};
use serde_json::json;

use crate::world::{Counting, events, new_task, orchestrator};

pub(crate) const STEPS: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { text = "Looking." },
    { call = { name = "look", arguments = { at = "a" } } },
    { call = { name = "look", arguments = { at = "b" } } },
    { call = { name = "act", arguments = { on = "a" } } },
    { call = { name = "act", arguments = { on = "b" } } },
]
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "act", arguments = { on = "c" } } }]
[[reply]]
step = [{ text = "Done." }]
"#;

#[tokio::test]
async fn a_task_takes_its_laps_and_delivers_the_last_word() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, STEPS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.detail.clone()), (TaskStatus::Completed, Some(json!("Done."))));
    assert_eq!(state.turns, 3);
    let done: Vec<(String, usize)> = tools.done().into_iter().collect();
    let once = |what: &str| (what.to_owned(), 1);
    assert_eq!(
        done,
        [
            once(r#"act {"on":"a"}"#),
            once(r#"act {"on":"b"}"#),
            once(r#"act {"on":"c"}"#),
            once(r#"look {"at":"a"}"#),
            once(r#"look {"at":"b"}"#),
        ]
    );
    let kinds: Vec<&str> = state
        .messages()
        .iter()
        .map(|message| match &**message {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "result",
        })
        .collect();
    assert_eq!(
        kinds.join(" "),
        "user assistant result result result result assistant result assistant"
    );
}

#[tokio::test]
async fn every_observed_state_is_a_legal_move() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal.clone(), &tools, STEPS);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end");
    let mut at = AgentState::Idle;
    for event in events(&*journal).await {
        if let EventBody::StateChanged(change) = event.body {
            for (from, to) in change.moves() {
                assert_eq!(from, at);
                assert_eq!(AgentState::validate_transition(from, to), Ok(()));
                at = to;
            }
        }
    }
    assert_eq!(at, AgentState::Idle);
}

#[tokio::test]
async fn a_lap_with_a_tool_is_two_appends() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let mortal =
        Arc::new(crate::world::Mortal::new(&journal, usize::MAX, crate::world::Death::Before));
    let script = r#"
name = "test"
[[reply]]
when = { turn = 10 }
step = [{ text = "Done." }]
[[reply]]
step = [{ call = { name = "look", arguments = {} } }]
"#;
    let orchestrator = orchestrator(mortal.clone(), &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end");
    // Its creation with the first request, then per step the calls and the next request, then the end.
    let appends = mortal.appends.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(appends, 1 + 10 * 2 + 1);
    let events = events(&*journal).await;
    // Four to create it; per step the answer, its usage, the state and the start of the call, then the result and the state;
    // four at the end.
    assert_eq!(events.len(), 4 + 10 * 6 + 4);
    let json = |event: &Event| serde_json::to_string(&event.body).expect("JSON").len();
    let of_states = events.iter().filter(|event| event.body.event_type() == "state_changed");
    let bytes = of_states.map(json).sum::<usize>();
    assert!(bytes <= (2 + 2 * 10) * 130, "{bytes} bytes of states");
}

#[tokio::test]
async fn a_call_of_final_delivers_something_structured() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = r#"
name = "test"
[[reply]]
step = [{ call = { name = "final", arguments_json = '{"result":{"n":1}}' } }]
"#;
    let orchestrator = orchestrator(journal, &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some(json!({"n": 1}))));
}

#[tokio::test]
async fn what_a_model_gets_wrong_is_told_to_it() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [
    { call = { name = "fly", arguments = {} } },
    { call = { name = "act", arguments_json = '{"on": "a' } },
]
[[reply]]
step = [{ text = "{{last_result}}" }]
"#;
    let orchestrator = orchestrator(journal, &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let reported = r#"the arguments are not a JSON object, nothing was run: {"on": "a"#;
    assert_eq!((state.status, state.detail), (TaskStatus::Completed, Some(json!(reported))));
    assert!(tools.done().is_empty());
}

#[tokio::test]
async fn a_model_that_fails_fails_its_task_with_the_reason() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = r#"
name = "test"
[[reply]]
step = [{ text = "Half" }, { error = { kind = "authentication", message = "no key" } }]
"#;
    let orchestrator = orchestrator(journal, &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    let reason = json!({
        "code": "authentication", "error": "the provider did not accept the key: no key"
    });
    assert_eq!((state.status, state.detail.clone()), (TaskStatus::Failed, Some(reason)));
    assert_eq!(state.messages().len(), 2, "what there was of the answer is kept");
}

#[tokio::test]
async fn a_task_goes_as_far_as_it_may() {
    let turns = TaskLimits { turns_max: NonZeroU32::new(2), ..TaskLimits::default() };
    let calls = TaskLimits { tool_calls_max: NonZeroU32::new(3), ..TaskLimits::default() };
    let tokens = TaskLimits { tokens_max: NonZeroU64::new(1), ..TaskLimits::default() };
    let cases = [
        (turns, "limit reached: 2 turns for the task and its tree", 2),
        (calls, "limit reached: 3 tool calls for the task and its tree", 1),
        (tokens, "limit reached: 1 token for the task and its tree", 1),
    ];
    for (limits, reason, turns) in cases {
        let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
        let orchestrator = orchestrator(journal, &tools, STEPS);
        let task = NewTask { limits, ..new_task("go") };
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        let state = orchestrator.wait(&task_id).await.expect("an end");
        assert_eq!(state.status, TaskStatus::Failed);
        assert_eq!(state.detail.expect("a reason")["error"], reason);
        assert_eq!(state.turns, turns);
    }
}

#[tokio::test]
async fn the_same_key_is_the_same_task() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let orchestrator = orchestrator(journal, &tools, STEPS);
    let keyed = || NewTask { key: Some(IdempotencyKey("k".to_owned())), ..new_task("go") };
    let first = orchestrator.invoke(keyed()).await.expect("accepted").task_id;
    orchestrator.wait(&first).await.expect("an end");
    let second = orchestrator.invoke(keyed()).await.expect("accepted").task_id;
    assert_eq!(first, second);
    assert_eq!(tools.done().values().sum::<usize>(), 5);
}

#[tokio::test]
async fn an_id_that_is_used_again_is_another_call() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = r#"
name = "test"
[[reply]]
when = { turn = 2 }
step = [{ text = "Done." }]
[[reply]]
step = [{ call = { id = "call_0", name = "act", arguments = { on = "{{turn}}" } } }]
"#;
    let orchestrator = orchestrator(journal, &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(tools.done().values().collect::<Vec<_>>(), [&1, &1]);
}

#[tokio::test]
async fn an_answer_that_was_filtered_ends_the_task_and_is_not_asked_for_again() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let script = r#"
name = "test"
[[reply]]
step = [{ call = { name = "act", arguments = {} } }]
stop = "error"
raw_stop = "refusal"
"#;
    let orchestrator = orchestrator(journal, &tools, script);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!((state.status, state.turns), (TaskStatus::Failed, 1));
    assert_eq!(state.detail.expect("a reason")["code"], "refused");
    assert!(tools.done().is_empty());
}

#[tokio::test]
async fn calls_of_another_time_are_never_run() {
    let (journal, tools) = (Arc::new(MemoryJournal::new()), Arc::new(Counting::default()));
    let first = orchestrator(journal, &tools, STEPS);
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = first.wait(&task_id).await.expect("an end");
    let done = tools.done();
    // Cut off behind its first answer: four calls without results.
    let before = PriorHistory::Messages(state.messages()[..2].to_vec());
    let answers = "name = \"test\"\n[[reply]]\nstep = [{ text = \"{{last_result}}\" }]\n";
    let second = orchestrator(Arc::new(MemoryJournal::new()), &tools, answers);
    let task = NewTask { before, ..new_task("go on") };
    let task_id = second.invoke(task).await.expect("accepted").task_id;
    let state = second.wait(&task_id).await.expect("an end");
    assert!(state.detail.expect("a result").to_string().contains("outcome unknown"));
    assert_eq!(tools.done(), done);
}
