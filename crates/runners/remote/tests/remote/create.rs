//! What the peer gets: the conversation so far and the limits, once.

use std::num::NonZeroU32;

use antiphon_core::port::{Clock, DispatchPermission, Expected, Runner, RunnerTask, SystemClock};
use antiphon_core::{
    AssistantBlock, AssistantMessage, CallableAgents, EventBody, HistoryRef, InputBlock, Message,
    MessageAppended, RawJson, Seq, StatusChanged, StopReason, TaskCreated, TaskId, TaskLimits,
    TaskStatus, ToolArguments, ToolCallBlock, ToolCallId, Usage,
};
use serde_json::json;

use crate::local::{LocalSide, PERSISTENT, created, runner, said};
use crate::peer_server::PeerServer;

fn texts(events: &[antiphon_core::Event]) -> Vec<String> {
    let messages = events.iter().filter_map(|event| {
        let EventBody::MessageAppended(appended) = &event.body else { return None };
        Some(&*appended.message)
    });
    let user = messages.filter_map(|message| match message {
        Message::User(user) => Some(user.content.as_slice()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    });
    let text = user.map(|content| match content {
        [InputBlock::Text(text)] => text.text.clone(),
        other => panic!("{other:?}"),
    });
    text.collect()
}

fn texts_of(content: &[InputBlock]) -> String {
    let text = |block: &InputBlock| match block {
        InputBlock::Text(text) => text.text.clone(),
        InputBlock::Image(_) => "(an image)".to_owned(),
    };
    content.iter().map(text).collect()
}

fn beginning(events: &[antiphon_core::Event]) -> &TaskCreated {
    let EventBody::TaskCreated(created) = &events[0].body else { panic!("{events:?}") };
    created
}

#[tokio::test]
async fn the_peer_gets_the_conversation_with_its_history() {
    let peer = PeerServer::new().await;
    let history = Some(HistoryRef { task_id: TaskId::parse("second").unwrap(), seq: Seq(2) });
    let local_task = TaskCreated { history, ..created() };
    let local = LocalSide::with(local_task, vec![said("three"), said("four")]).await;
    local.append("first", Expected::NoTask, vec![created().into(), said("one")]).await;
    let history = Some(HistoryRef { task_id: TaskId::parse("first").unwrap(), seq: Seq(2) });
    let second = TaskCreated { history, ..created() };
    let events = vec![second.into(), said("two"), said("too late")];
    local.append("second", Expected::NoTask, events).await;
    local.run(&peer.url()).await.unwrap();
    let events = peer.events().await;
    assert_eq!(texts(&events), ["one", "two", "three", "four"]);
    assert_eq!(beginning(&events).system_prompt, "Ours.");
    assert_eq!(texts(&local.events().await), ["three", "four"]);
    peer.end().await;
}

/// The child of a task that called it together with another tool: neither call has a result yet.
#[tokio::test]
async fn the_peer_gets_of_an_inherited_conversation_what_a_model_here_would_read() {
    let peer = PeerServer::new().await;
    let call = |id: &str, name: &str| {
        AssistantBlock::ToolCall(ToolCallBlock {
            id: ToolCallId::parse(id).unwrap(),
            name: name.to_owned(),
            arguments: ToolArguments::Object(RawJson::parse("{}").unwrap()),
            signature: None,
        })
    };
    let answer = AssistantMessage {
        content: vec![AssistantBlock::text("I ask."), call("c1", "call_agent"), call("c2", "look")],
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage::default(),
        model: None,
        timestamp: SystemClock.now(),
    };
    let answer: EventBody = MessageAppended::new(Message::Assistant(answer)).into();
    let history = Some(HistoryRef { task_id: TaskId::parse("caller").unwrap(), seq: Seq(4) });
    let child = TaskCreated { history, ..created() };
    let local = LocalSide::with(child, vec![said("do it")]).await;
    let caller: Vec<EventBody> = vec![created().into(), said("old"), said("begin"), answer];
    local.append("caller", Expected::NoTask, caller).await;
    local.run(&peer.url()).await.unwrap();
    let events = peer.events().await;
    let conversation: Vec<String> = events
        .iter()
        .filter_map(|event| {
            let EventBody::MessageAppended(appended) = &event.body else { return None };
            Some(match &*appended.message {
                Message::User(user) => format!("user: {}", texts_of(&user.content)),
                Message::Assistant(answer) => {
                    format!("model: {}, {} calls", answer.text(), answer.tool_calls().count())
                }
                Message::ToolResult(result) => format!("result of {}", result.tool_name),
            })
        })
        .collect();
    assert_eq!(
        conversation[..4],
        ["user: old", "user: begin", "model: I ask., 0 calls", "user: do it"]
    );
    assert!(!conversation.iter().any(|line| line.starts_with("result")), "{conversation:?}");
    peer.end().await;
}

#[tokio::test]
async fn the_remote_task_has_the_permissions_of_the_local_one() {
    let peer = PeerServer::new().await;
    let limits = TaskLimits {
        turns_max: NonZeroU32::new(7),
        depth_max: NonZeroU32::new(5),
        ..TaskLimits::default()
    };
    let schema = RawJson::parse(r#"{"type":"string"}"#).unwrap();
    let local_task = TaskCreated {
        limits,
        depth: 2,
        tools: Some(vec!["look".to_owned()]),
        agents: CallableAgents::Only(vec!["reviewer".to_owned()]),
        output_schema: Some(schema.clone()),
        ..created()
    };
    let local = LocalSide::with(local_task, vec![said("hi")]).await;
    // What is left for it, which the orchestrator found out.
    let left = TaskLimits { depth_max: NonZeroU32::new(3), ..limits };
    let run = local.run_on(local.journal.clone(), json!({"peer": "there"}));
    let run = RunnerTask { limits: left, ..run };
    runner(&peer.url(), PERSISTENT).run(run).await.unwrap();
    let events = peer.events().await;
    let remote = beginning(&events);
    assert_eq!(remote.limits.turns_max, NonZeroU32::new(7));
    assert_eq!(remote.limits.depth_max, NonZeroU32::new(3));
    assert_eq!(remote.tools.as_deref().unwrap(), ["look"]);
    assert_eq!(remote.agents, CallableAgents::Only(vec!["reviewer".to_owned()]));
    assert_eq!(remote.output_schema, Some(schema));
    peer.end().await;
}

#[tokio::test]
async fn a_task_at_its_depth_limit_dispatches_no_agent_at_the_peer() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hi").await);
    let run = local.run_on(local.journal.clone(), json!({"peer": "there"}));
    let run = RunnerTask { dispatches: DispatchPermission::Denied, ..run };
    runner(&peer.url(), PERSISTENT).run(run).await.unwrap();
    assert!(beginning(&peer.events().await).agents.allows_none());
    peer.end().await;
}

#[tokio::test]
async fn an_agent_of_the_peer_has_its_own_system_prompt_and_model() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hi").await);
    let config = json!({"peer": "there", "agent": "expert"});
    let run = local.run_on(local.journal.clone(), config);
    runner(&peer.url(), PERSISTENT).run(run).await.unwrap();
    let events = peer.events().await;
    let remote = beginning(&events);
    assert_eq!((remote.agent.as_str(), remote.system_prompt.as_str()), ("expert", "There."));
    peer.end().await;
}

#[tokio::test]
async fn two_followers_of_one_task_create_it_once_and_append_its_events_once() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("steps").await);
    let url = peer.url();
    let (first, second) = tokio::join!(local.run(&url), local.run(&url));
    first.unwrap();
    second.unwrap();
    assert_eq!(local.relayed().await, crate::local::worked(&peer).await);
    let all = antiphon_core::port::TaskQuery {
        which: antiphon_core::port::TaskSelector::All,
        limit: std::num::NonZeroUsize::MAX,
    };
    assert_eq!(peer.orchestrator.tasks(all).await.unwrap().len(), 1);
    peer.end().await;
}

#[tokio::test]
async fn a_task_that_has_ended_is_not_created_at_the_peer() {
    let (peer, local) = (PeerServer::new().await, LocalSide::new("hi").await);
    local.say(StatusChanged::new(TaskStatus::Failed)).await;
    let before = local.events().await;
    local.run(&peer.url()).await.unwrap();
    assert_eq!(local.events().await, before);
    let all = antiphon_core::port::TaskQuery {
        which: antiphon_core::port::TaskSelector::All,
        limit: std::num::NonZeroUsize::MAX,
    };
    assert_eq!(peer.orchestrator.tasks(all).await.unwrap(), []);
    peer.end().await;
}
