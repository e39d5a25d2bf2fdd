//! Killed at any write and restarted: every accepted interaction is taken once, and every requester
//! has one answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{IdempotencyKey, Journal};
use antiphon_core::{
    Event, EventBody, InteractionContent, InteractionId, Sender, SourceName, TaskId, TaskStatus,
};
use antiphon_runtime::{Arrival, Orchestrator, OrchestratorError, Receipt};
use serde_json::json;

use crate::live_agents::{LiveAgents, at_rest, keyed, message, name, request};
use crate::team::{otherwise, replying, says, step};
use crate::world::{Death, Mortal};

/// Ada asks Bob and waits, asks him again and does not, and tells him something; he answers one at
/// the end of his turn and one with a tool.
fn script() -> String {
    let ada = |when: &str, steps: &str| {
        replying(&format!("system_contains = \"I am ada\", {when}"), steps)
    };
    let ask = |intent: &str, wait: bool| {
        step("send_request", &format!(r#"{{"to":"bob","intent":"{intent}","wait":{wait}}}"#))
    };
    let tell = step("send_message", r#"{"to":"bob","text":"by the way"}"#);
    let both = format!("{}, {tell}", ask("second", false));
    format!(
        "name = \"live_agents\"\n{}",
        ada("last_user_contains = \"go\", results_since_user = 0", &ask("first", true))
    ) + &ada("last_user_contains = \"go\", results_since_user = 1", &both)
        + &replying(
            "system_contains = \"I am bob\", last_user_contains = \"second\", results_since_user = 0",
            &step("reply", r#"{"text":"two"}"#),
        )
        + &otherwise(&says("Heard: {{last_user}}"))
}

/// What a person does, once, however often they are cut off.
async fn invoke_attached(orchestrator: &Orchestrator) -> Result<(), OrchestratorError> {
    for who in ["bob", "ada"] {
        if orchestrator.agent_task(&name(who)).await?.is_none() {
            orchestrator.start_agent(&name(who), &antiphon_core::Provenance::Owner).await?;
        }
    }
    let event = Sender::External(SourceName::parse("hook").expect("a name"));
    let arrivals = [
        keyed(message("ada", "go"), "1"),
        keyed(Arrival { from: event, ..message("bob", "it rains") }, "2"),
        keyed(request("bob", "sum", json!([1, 2])), "3"),
    ];
    for arrival in arrivals {
        let receipt = orchestrator.admit(arrival).await?;
        let there = matches!(receipt, Receipt::Accepted { .. } | Receipt::Deduplicated { .. });
        assert!(there, "{receipt:?}");
    }
    // Ada is done when she has both answers.
    for who in ["ada", "bob", "ada"] {
        let ended = rest(orchestrator, who).await?;
        if ended == TaskStatus::Failed {
            return Err(OrchestratorError::NotRunning {
                task_id: TaskId::parse("t").expect("an id"),
            });
        }
    }
    let key = Some(IdempotencyKey("stop".to_owned()));
    orchestrator.stop_agent(&name("bob"), key).await?;
    Ok(())
}

async fn rest(orchestrator: &Orchestrator, who: &str) -> Result<TaskStatus, OrchestratorError> {
    let task = orchestrator.agent_task(&name(who)).await?.expect("it was started");
    match orchestrator.wait(&task.task_id).await {
        Ok(state) => Ok(state.status),
        Err(OrchestratorError::NotRunning { .. }) => Ok(TaskStatus::Running),
        Err(error) => Err(error),
    }
}

fn text(content: &InteractionContent) -> String {
    match content {
        InteractionContent::Message { body, .. } => body.clone(),
        InteractionContent::Request { intent, .. } => intent.clone(),
        InteractionContent::Response { status, .. } => status.as_str().to_owned(),
        InteractionContent::Ack { .. } => "ack".to_owned(),
    }
}

/// What must hold at the end, wherever its process died.
fn check(events: &[Event], place: &str) {
    let mut arrived: BTreeMap<String, usize> = BTreeMap::new();
    let mut waiting: BTreeMap<InteractionId, usize> = BTreeMap::new();
    let mut taken: BTreeMap<InteractionId, usize> = BTreeMap::new();
    let (mut sent, mut answers, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for event in events {
        if let EventBody::MessageQueued(queued) = &event.body {
            let what = format!("{}: {}", queued.from, text(&queued.content));
            *arrived.entry(what).or_default() += 1;
            *waiting.entry(queued.id).or_default() += 1;
            answers.extend(queued.final_answer_to());
        } else if let EventBody::MessageAppended(appended) = &event.body
            && let Some(id) = appended.queued
        {
            *taken.entry(id).or_default() += 1;
        } else if let EventBody::RequestSent(request) = &event.body {
            sent.push(request.id);
        } else if let EventBody::Replied(replied) = &event.body {
            replies.push(replied.in_reply_to);
        }
    }
    let expected = [
        ("ada: by the way", 1),
        ("ada: first", 1),
        ("ada: second", 1),
        ("bob: completed", 2),
        ("event:hook: it rains", 1),
        ("user: go", 1),
        ("user: sum", 1),
    ];
    let expected = expected.map(|(what, times)| (what.to_owned(), times));
    assert_eq!(arrived, BTreeMap::from(expected), "{place}");
    assert_eq!(taken, waiting, "{place}: each was taken once");
    assert!(taken.values().all(|times| *times == 1), "{place}");
    sent.sort();
    answers.sort();
    assert_eq!((sent.len(), &answers), (2, &sent), "{place}: each has one answer");
    replies.sort();
    replies.dedup();
    let finals = events.iter().filter(|e| matches!(e.body, EventBody::Replied(_))).count();
    assert_eq!((replies.len(), finals), (3, 3), "{place}: each was answered once");
    let ends = events.iter().filter(|event| event.body.ends_task()).count();
    let begins = events.iter().filter(|e| matches!(e.body, EventBody::TaskCreated(_))).count();
    assert_eq!((begins, ends), (2, 1), "{place}");
    let mut seqs: BTreeMap<&TaskId, u64> = BTreeMap::new();
    for event in events {
        let seq = seqs.entry(&event.task_id).or_default();
        *seq += 1;
        assert_eq!(event.seq.0, *seq, "{place}");
    }
}

async fn interrupted(
    live_agents: &LiveAgents,
    last: usize,
    death: Death,
) -> (Arc<MemoryJournal>, bool) {
    let journal = Arc::new(MemoryJournal::new());
    let first = live_agents.on(Arc::new(Mortal::new(&journal, last, death)));
    let hour = Duration::from_secs(3600);
    let whole = matches!(tokio::time::timeout(hour, invoke_attached(&first)).await, Ok(Ok(())));
    first.shutdown(Duration::from_secs(5)).await;
    (journal, whole)
}

#[tokio::test(start_paused = true)]
async fn an_office_survives_death_at_every_write() {
    let (mut died, mut lived) = (0, 0);
    for last in 0.. {
        let mut whole = true;
        for death in [Death::Before, Death::After] {
            let place = format!("{death:?} write {last}");
            let live_agents = LiveAgents::of(&["ada", "bob"], script());
            let (journal, through) = interrupted(&live_agents, last, death).await;
            died += usize::from(!through);
            whole &= through;
            let second = live_agents.on(journal.clone() as Arc<dyn Journal>);
            second.recover().await.expect("a list");
            let hour = Duration::from_secs(3600);
            let ended = tokio::time::timeout(hour, invoke_attached(&second)).await;
            ended.expect(&place).expect(&place);
            let state = at_rest(&second, "ada").await;
            let left =
                (state.queue.len(), state.inbound_requests.len(), state.outbound_requests.len());
            assert_eq!((state.status, left), (TaskStatus::Running, (0, 0, 0)), "{place}");
            let bob = second.agent_task(&name("bob")).await.expect("a list").expect("a task");
            assert_eq!(bob.status, TaskStatus::Canceled, "{place}");
            second.shutdown(Duration::from_secs(5)).await;
            check(&crate::world::events(&*journal).await, &place);
        }
        if whole {
            lived += 1;
            if lived == 3 {
                break;
            }
        }
    }
    assert!(died > 30, "it died {died} times");
}

/// Killed while a request waits: its deadline still passes.
#[tokio::test(start_paused = true)]
async fn a_deadline_passes_also_while_no_process_runs() {
    let ask = step("send_request", r#"{"to":"bob","intent":"hold","timeout_s":60}"#);
    let stalls = replying("system_contains = \"I am bob\"", "{ stall = true }");
    let text = crate::team::script(&[("I am ada", 0, &ask)])
        + &stalls
        + &otherwise(&says("Heard: {{last_result}}"));
    let mut live_agents = LiveAgents::of(&["ada", "bob"], text);
    let bob = live_agents.start("bob").await;
    live_agents.admit(message("ada", "go")).await;
    let requested =
        |event: &Event| event.task_id == bob && matches!(event.body, EventBody::MessageAppended(_));
    live_agents.until(requested).await;
    live_agents.orchestrator.shutdown(Duration::ZERO).await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    live_agents.restart().await;
    let state = live_agents.at_rest("ada").await;
    let received = crate::live_agents::said(&state).join("\n");
    assert_eq!(received.matches("timed_out").count(), 2, "{received}");
    assert!(state.outbound_requests.is_empty());
}
