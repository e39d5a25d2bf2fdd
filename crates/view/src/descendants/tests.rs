use antiphon_core::{
    AssistantBlock, AssistantMessage, CallableAgents, Effect, HandedOver, Message, MessageAppended,
    Position, RawJson, RunnerConfig, Seq, SessionId, StopReason, ToolArguments, ToolCallBlock,
    ToolCallId, ToolStarted, Usage, UserMessage,
};
use chrono::DateTime;
use serde_json::{Value, json};

use super::*;

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn event(task: &str, body: impl Into<EventBody>) -> Event {
    let at = DateTime::UNIX_EPOCH;
    Event { position: Position(1), task_id: id(task), seq: Seq(1), at, body: body.into() }
}

fn created(task: &str, parent: &str, agent: &str) -> Event {
    let session = SessionId::parse("talk").unwrap();
    let parent = Some(id(parent));
    event(task, TaskCreated { parent, ..TaskCreated::new(agent, session) })
}

fn prompted(task: &str, text: &str) -> Event {
    let message = Message::from(UserMessage::text(text, DateTime::UNIX_EPOCH));
    event(task, MessageAppended::new(message))
}

fn calls(task: &str) -> [Event; 2] {
    let arguments = RawJson::parse(r#"{"pattern":"TODO"}"#).unwrap();
    let call = ToolCallBlock {
        id: ToolCallId::parse("c1").unwrap(),
        name: "grep".to_owned(),
        arguments: ToolArguments::Object(arguments),
        signature: None,
    };
    let content = vec![AssistantBlock::ToolCall(call)];
    let answer = AssistantMessage {
        content,
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage::default(),
        model: None,
        timestamp: DateTime::UNIX_EPOCH,
    };
    let started = ToolStarted {
        tool_call_id: ToolCallId::parse("c1").unwrap(),
        tool_name: "grep".to_owned(),
        effect: Effect::ReadOnly,
        note: None,
    };
    [event(task, MessageAppended::new(Message::from(answer))), event(task, started)]
}

fn ended(task: &str, status: TaskStatus, detail: Value) -> Event {
    event(task, StatusChanged { detail: Some(detail), ..StatusChanged::new(status) })
}

fn notes(descendants: &mut Descendants, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    events.into_iter().flat_map(|event| descendants.apply(&event)).map(|note| note.text).collect()
}

#[test]
fn the_notes_of_a_descendant_name_its_agent() {
    let mut descendants = Descendants::new(id("top"));
    let mut events = vec![created("a", "top", "researcher"), prompted("a", "Find it.\nQuickly.")];
    events.extend(calls("a"));
    events.push(created("a1", "a", "reader"));
    events.push(prompted("a1", "Read it."));
    events.push(ended("a1", TaskStatus::Failed, json!({ "error": "the model is away" })));
    events.push(ended("a", TaskStatus::Completed, json!("one\ntwo")));
    let expected = [
        "  [researcher] begins: Find it.",
        "  [researcher] → grep TODO",
        "    [reader] begins: Read it.",
        "    [reader] failed: the model is away",
        "  [researcher] ✓ done, 2 lines",
    ];
    assert_eq!(notes(&mut descendants, events), expected);
}

#[test]
fn a_second_agent_of_a_name_gets_a_number_and_a_handover_a_new_name() {
    let mut descendants = Descendants::new(id("top"));
    let over = HandedOver {
        tool_call_id: ToolCallId::parse("c1").unwrap(),
        agent: "writer".to_owned(),
        model: None,
        fallbacks: Vec::new(),
        system_prompt: String::new(),
        tools: None,
        agents: CallableAgents::Any,
    };
    let events = [
        created("a", "top", "researcher"),
        created("b", "top", "researcher"),
        prompted("b", "Go."),
        event("b", over),
        ended("b", TaskStatus::Completed, json!({ "n": 1 })),
    ];
    let expected = [
        "  [researcher 2] begins: Go.",
        "  [researcher 2] → hands over to writer",
        "  [writer] ✓ done, structured",
    ];
    assert_eq!(notes(&mut descendants, events), expected);
}

#[test]
fn a_task_of_another_tree_gives_no_note() {
    let mut descendants = Descendants::new(id("top"));
    let events = [
        created("x", "elsewhere", "stranger"),
        prompted("x", "Go."),
        ended("x", TaskStatus::Completed, json!("done")),
    ];
    assert!(events.iter().all(|event| !descendants.concerns(event)));
    assert_eq!(notes(&mut descendants, events), [""; 0]);
}

#[test]
fn a_runner_is_named_where_a_task_begins() {
    let mut descendants = Descendants::new(id("top"));
    let runner = RunnerConfig { kind: "sandbox".to_owned(), config: json!({}) };
    let session = SessionId::parse("talk").unwrap();
    let created = TaskCreated {
        parent: Some(id("top")),
        runner: Some(runner),
        ..TaskCreated::new("coder", session)
    };
    let notes = notes(&mut descendants, [event("a", created), prompted("a", "Go.")]);
    assert_eq!(notes, ["  [coder] begins on sandbox: Go."]);
}

#[test]
fn of_ten_thousand_descendants_some_are_listed_and_none_is_kept_after_its_end() {
    let mut descendants = Descendants::new(id("top"));
    let count = 10_000;
    let begin = (0..count).flat_map(|n| {
        let task = format!("t{n}");
        [created(&task, "top", "worker"), prompted(&task, "Go.")]
    });
    let end = (0..count).map(|n| {
        let failed = n % 100 == 50;
        let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
        ended(&format!("t{n}"), status, json!({ "error": "no" }))
    });
    let start_notes = notes(&mut descendants, begin);
    assert_eq!(start_notes.len(), LISTED_MAX + 1, "{start_notes:?}");
    assert_eq!(descendants.running.len(), count);
    let end_notes = notes(&mut descendants, end);
    assert_eq!(end_notes.len(), LISTED_MAX + FAILURES_LISTED_MAX + 1, "{end_notes:?}");
    assert_eq!(end_notes.last().unwrap(), "  […] 9992 more agents: 9892 done, 100 failed");
    assert!(descendants.running.is_empty());
}

#[test]
fn the_children_the_top_waits_for_are_counted_until_it_runs_again() {
    let mut descendants = Descendants::new(id("top"));
    let children: Vec<TaskId> = ["a", "b", "c"].map(id).into();
    let dispatched = |join, children| {
        let tool_call_id = ToolCallId::parse("c1").unwrap();
        Dispatched {
            tool_call_id,
            context: antiphon_core::ContextScope::default(),
            join,
            children,
            left_out: Vec::new(),
        }
    };
    descendants.apply_to_top(&dispatched(Join::Detached, vec![id("z")]).into());
    assert_eq!(descendants.waiting_text(), None);
    descendants.apply_to_top(&dispatched(Join::All, children).into());
    assert_eq!(descendants.waiting_text().as_deref(), Some("0 of 3 agents done"));
    for task in ["a", "b", "c"] {
        descendants.apply(&created(task, "top", task));
    }
    descendants.apply(&ended("b", TaskStatus::Failed, json!({ "error": "no" })));
    assert_eq!(descendants.waiting_text().as_deref(), Some("1 of 3 agents done"));
    descendants.apply(&ended("a", TaskStatus::Completed, json!("yes")));
    descendants.apply(&ended("c", TaskStatus::Canceled, Value::Null));
    assert_eq!(descendants.waiting_text(), None);
}
