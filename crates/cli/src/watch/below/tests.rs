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

fn asked(task: &str, text: &str) -> Event {
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
    };
    [event(task, MessageAppended::new(Message::from(answer))), event(task, started)]
}

fn ended(task: &str, status: TaskStatus, detail: Value) -> Event {
    event(task, StatusChanged { detail: Some(detail), ..StatusChanged::new(status) })
}

fn told(below: &mut Below, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    events.into_iter().flat_map(|event| below.hear(&event)).map(|note| note.text).collect()
}

#[test]
fn the_steps_of_a_task_below_are_told_under_its_agents_name() {
    let mut below = Below::new(id("top"));
    let mut events = vec![created("a", "top", "researcher"), asked("a", "Find it.\nQuickly.")];
    events.extend(calls("a"));
    events.push(created("a1", "a", "reader"));
    events.push(asked("a1", "Read it."));
    events.push(ended("a1", TaskStatus::Failed, json!({ "error": "the model is away" })));
    events.push(ended("a", TaskStatus::Completed, json!("one\ntwo")));
    let expected = [
        "  [researcher] begins: Find it.",
        "  [researcher] → grep TODO",
        "    [reader] begins: Read it.",
        "    [reader] failed: the model is away",
        "  [researcher] ✓ done, 2 lines",
    ];
    assert_eq!(told(&mut below, events), expected);
}

#[test]
fn a_second_agent_of_a_name_gets_a_number_and_a_handover_a_new_name() {
    let mut below = Below::new(id("top"));
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
        asked("b", "Go."),
        event("b", over),
        ended("b", TaskStatus::Completed, json!({ "n": 1 })),
    ];
    let expected = [
        "  [researcher 2] begins: Go.",
        "  [researcher 2] → hands over to writer",
        "  [writer] ✓ done, structured",
    ];
    assert_eq!(told(&mut below, events), expected);
}

#[test]
fn a_task_of_another_tree_tells_nothing() {
    let mut below = Below::new(id("top"));
    let events = [
        created("x", "elsewhere", "stranger"),
        asked("x", "Go."),
        ended("x", TaskStatus::Completed, json!("done")),
    ];
    assert!(events.iter().all(|event| !below.concerns(event)));
    assert_eq!(told(&mut below, events), [""; 0]);
}

#[test]
fn a_runner_is_named_where_a_task_begins() {
    let mut below = Below::new(id("top"));
    let runner = RunnerConfig { kind: "sandbox".to_owned(), config: json!({}) };
    let session = SessionId::parse("talk").unwrap();
    let created = TaskCreated {
        parent: Some(id("top")),
        runner: Some(runner),
        ..TaskCreated::new("coder", session)
    };
    let told = told(&mut below, [event("a", created), asked("a", "Go.")]);
    assert_eq!(told, ["  [coder] begins on sandbox: Go."]);
}

#[test]
fn of_ten_thousand_only_some_are_told_and_none_is_kept_in_the_end() {
    let mut below = Below::new(id("top"));
    let count = 10_000;
    let begin = (0..count).flat_map(|n| {
        let task = format!("t{n}");
        [created(&task, "top", "worker"), asked(&task, "Go.")]
    });
    let end = (0..count).map(|n| {
        let failed = n % 100 == 50;
        let status = if failed { TaskStatus::Failed } else { TaskStatus::Completed };
        ended(&format!("t{n}"), status, json!({ "error": "no" }))
    });
    let told_of_begins = told(&mut below, begin);
    assert_eq!(told_of_begins.len(), TOLD_MAX + 1, "{told_of_begins:?}");
    assert_eq!(below.alive.len(), count);
    let told_of_ends = told(&mut below, end);
    assert_eq!(told_of_ends.len(), TOLD_MAX + FAILURES_TOLD_MAX + 1, "{told_of_ends:?}");
    assert_eq!(told_of_ends.last().unwrap(), "  […] 9992 more agents: 9892 done, 100 failed");
    assert!(below.alive.is_empty());
}

#[test]
fn whom_the_top_waits_for_is_counted_until_it_goes_on() {
    let mut below = Below::new(id("top"));
    let children: Vec<TaskId> = ["a", "b", "c"].map(id).into();
    let dispatched = |join, children| {
        let tool_call_id = ToolCallId::parse("c1").unwrap();
        Dispatched { tool_call_id, context: antiphon_core::ContextScope::default(), join, children }
    };
    below.top_did(&dispatched(Join::Detached, vec![id("z")]).into());
    assert_eq!(below.waiting(), None);
    below.top_did(&dispatched(Join::All, children).into());
    assert_eq!(below.waiting().as_deref(), Some("0 of 3 agents done"));
    for task in ["a", "b", "c"] {
        below.hear(&created(task, "top", task));
    }
    below.hear(&ended("b", TaskStatus::Failed, json!({ "error": "no" })));
    assert_eq!(below.waiting().as_deref(), Some("1 of 3 agents done"));
    below.hear(&ended("a", TaskStatus::Completed, json!("yes")));
    below.hear(&ended("c", TaskStatus::Canceled, Value::Null));
    assert_eq!(below.waiting(), None);
}
