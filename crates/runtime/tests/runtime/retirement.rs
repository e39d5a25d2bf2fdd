//! Agents that fail, are stopped and are started again: what waited, waits for the next.

use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::IdempotencyKey;
use antiphon_core::{
    AgentDefinition, CallableAgents, EventBody, InteractionContent, InteractionId, MessageQueued,
    PeerInputClass, RenderClass, RenderMetadata, ResponseStatus, TaskId, TaskStatus,
};
use antiphon_runtime::{
    Arrival, INBOX_MAX, INBOX_OF_SENDER_MAX, NewTask, Receipt, Rejection, session_of,
};
use serde_json::{Value, json};

use crate::live_agents::{LiveAgents, clerk, keyed, message, name, peer, request, said};
use crate::team::{Roster, otherwise, replying, says};
use crate::world::{Death, Mortal, new_task};

const NO: &str = "{ error = { kind = \"permission\", message = \"no\" } }";

/// Fails at what is bad, after a while, and answers the rest.
fn fragile() -> String {
    let late = format!("{}, {{ delay_ms = 1000 }}, {NO}", says("Well"));
    format!("name = \"live_agents\"\n{}", replying("last_user_contains = \"bad\"", &late))
        + &otherwise(&says("Heard: {{last_user}}"))
}

/// An agent in the middle of its answer to something bad.
async fn failing() -> (LiveAgents, InteractionId, TaskId) {
    let live_agents = LiveAgents::of(&["ada"], fragile());
    let mut deltas = live_agents.orchestrator.deltas();
    let (id, task_id) = live_agents.admit(request("ada", "bad", json!(1))).await;
    deltas.recv().await.expect("a delta");
    (live_agents, id, task_id)
}

async fn ids(live_agents: &LiveAgents, task_id: &TaskId) -> Vec<InteractionId> {
    live_agents.arrived(task_id).await.into_iter().map(|queued| queued.id).collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_answers_every_request_and_leaves_the_rest_to_the_next() {
    let (live_agents, bad, first) = failing().await;
    let (waiting, _) = live_agents.admit(keyed(message("ada", "one"), "1")).await;
    let (requested, _) = live_agents.admit(request("ada", "two", json!(2))).await;
    let replied = live_agents.reply(bad).await;
    assert_eq!(replied.status, ResponseStatus::Failed);
    assert_eq!(replied.result, json!({"code": "failed", "error": "the agent has failed"}));
    let state = live_agents.orchestrator.wait(&first).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Failed);
    assert_eq!(state.detail.expect("a reason")["code"], "permission");
    let unread =
        live_agents.orchestrator.reply(requested).await.expect("a journal").expect("an answer");
    assert_eq!(unread.result["code"], "failed", "also the unread one");
    // What was accepted once is not accepted again by the next.
    let (next, second) = live_agents.admit(message("ada", "three")).await;
    assert_ne!(second, first);
    let again = live_agents.orchestrator.admit(keyed(message("ada", "one"), "1")).await;
    assert_eq!(again, Ok(Receipt::Deduplicated { id: waiting, task_id: first.clone() }));
    let state = live_agents.at_rest("ada").await;
    assert_eq!(ids(&live_agents, &second).await, [waiting, next]);
    let received = said(&state);
    assert!(received[0].contains("bad"), "it continues the conversation: {received:?}");
    for text in ["user: one", "user: three"] {
        assert_eq!(received.iter().filter(|line| *line == text).count(), 1, "{received:?}");
    }
    assert_eq!((state.queue.len(), state.inbound_requests.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_stopped_answers_every_request_and_keeps_its_messages() {
    let (live_agents, bad, first) = failing().await;
    let (waiting, _) = live_agents.admit(keyed(message("ada", "one"), "1")).await;
    let (requested, _) = live_agents.admit(keyed(request("ada", "two", json!(2)), "2")).await;
    let stopped = live_agents.orchestrator.stop_agent(&name("ada"), None).await;
    assert_eq!(stopped, Ok(Some(first.clone())));
    for id in [bad, requested] {
        let replied =
            live_agents.orchestrator.reply(id).await.expect("a journal").expect("an answer");
        assert_eq!(replied.result, json!({"code": "stopped", "error": "the agent has stopped"}));
    }
    let refused = live_agents.orchestrator.admit(message("ada", "three")).await;
    let agent = "ada".to_owned();
    assert_eq!(refused, Ok(Receipt::Rejected(Rejection::Stopped { agent })));
    for (key, id) in [("1", waiting), ("2", requested)] {
        let again = live_agents.orchestrator.admit(keyed(message("ada", "x"), key)).await;
        assert_eq!(again, Ok(Receipt::Deduplicated { id, task_id: first.clone() }));
    }
    assert_eq!(live_agents.orchestrator.stop_agent(&name("ada"), None).await, Ok(None));
    let second = live_agents.start("ada").await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!(ids(&live_agents, &second).await, [waiting]);
    assert_eq!(said(&state).last().map(String::as_str), Some("model: Heard: one"));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_stops_an_agent_once() {
    let live_agents = LiveAgents::of(&["ada"], fragile());
    let first = live_agents.start("ada").await;
    let key = || Some(IdempotencyKey("stop:1".to_owned()));
    let ada = name("ada");
    let stopped = live_agents.orchestrator.stop_agent(&ada, key()).await;
    assert_eq!(stopped, Ok(Some(first.clone())));
    let second = live_agents.start("ada").await;
    assert_eq!(live_agents.orchestrator.stop_agent(&ada, key()).await, Ok(Some(first)));
    let summary = live_agents.orchestrator.agent_task(&name("ada")).await.expect("a list");
    let summary = summary.expect("a task");
    assert_eq!((summary.task_id, summary.status.is_terminal()), (second, false));
}

#[tokio::test(start_paused = true)]
async fn an_idle_agent_that_is_stopped_has_nothing_left_to_answer() {
    let live_agents = LiveAgents::of(&["ada"], fragile());
    let (id, _) = live_agents.admit(request("ada", "count", json!(1))).await;
    live_agents.at_rest("ada").await;
    live_agents.orchestrator.stop_agent(&name("ada"), None).await.expect("stopped");
    assert_eq!(live_agents.reply(id).await.status, ResponseStatus::Completed);
    let replies = live_agents.events().await.into_iter();
    assert_eq!(replies.filter(|e| matches!(e.body, EventBody::Replied(_))).count(), 1);
}

/// A user continues an agent's conversation in a task of their own: the agent stays the agent.
#[tokio::test(start_paused = true)]
async fn a_task_in_the_conversation_of_an_agent_is_not_the_agent() {
    let mut live_agents = LiveAgents::of(&["ada"], fragile());
    let agent = live_agents.start("ada").await;
    let session_id = Some(session_of(&name("ada")).expect("a session"));
    let task = NewTask { session_id, ..new_task("hello") };
    let task_id = live_agents.orchestrator.invoke(task).await.expect("accepted").task_id;
    live_agents.orchestrator.wait(&task_id).await.expect("an end");
    live_agents.restart().await;
    let (_, reads) = live_agents.admit(message("ada", "one")).await;
    assert_eq!(reads, agent);
    assert_eq!(live_agents.start("ada").await, agent);
}

/// An inbox takes as much as it may from each and from all, and being sent the same again makes no
/// room.
#[tokio::test]
async fn a_full_inbox_says_so_and_still_knows_what_it_has() {
    let live_agents = LiveAgents::of(
        &["ada"],
        format!(
            "name = \"live_agents\"\n{}",
            otherwise(&format!("{}, {{ stall = true }}", says("Hm")))
        ),
    );
    let mut deltas = live_agents.orchestrator.deltas();
    live_agents.admit(message("ada", "go")).await;
    deltas.recv().await.expect("a delta");
    let from = |sender: usize, n: usize| {
        let from = peer(&format!("peer-{sender}"));
        keyed(Arrival { from, ..message("ada", "x") }, &n.to_string())
    };
    let agent = || "ada".to_owned();
    for sender in 0..INBOX_MAX / INBOX_OF_SENDER_MAX {
        for n in 0..INBOX_OF_SENDER_MAX {
            live_agents.admit(from(sender, n)).await;
            if n % 100 == 0 {
                let again =
                    live_agents.orchestrator.admit(from(sender, n)).await.expect("a receipt");
                assert!(matches!(again, Receipt::Deduplicated { .. }), "{again:?}");
            }
        }
        let receipt = live_agents.orchestrator.admit(from(sender, INBOX_OF_SENDER_MAX)).await;
        let rejection = if sender == 3 {
            Rejection::Full { agent: agent() }
        } else {
            Rejection::SenderFull { agent: agent(), from: peer(&format!("peer-{sender}")) }
        };
        assert!(rejection.is_temporary());
        assert_eq!(receipt, Ok(Receipt::Rejected(rejection)));
    }
    let again = live_agents.orchestrator.admit(from(0, 0)).await.expect("a receipt");
    assert!(matches!(again, Receipt::Deduplicated { .. }), "{again:?}");
    let receipt = live_agents.orchestrator.admit(from(9, 0)).await;
    assert_eq!(receipt, Ok(Receipt::Rejected(Rejection::Full { agent: agent() })));
}

/// What an agent has read about its peers, in order.
async fn news(live_agents: &LiveAgents, agent: &str) -> Vec<(PeerInputClass, Value)> {
    let task = live_agents.orchestrator.agent_task(&name(agent)).await.expect("a list");
    let arrived = live_agents.arrived(&task.expect("a task").task_id).await;
    let news = |queued: MessageQueued| {
        let InteractionContent::Request { params, .. } = queued.content else { return None };
        Some((queued.class, params))
    };
    arrived.into_iter().filter_map(news).collect()
}

#[tokio::test(start_paused = true)]
async fn agents_that_name_a_peer_are_notified_when_it_starts_and_stops() {
    let only = CallableAgents::Only(vec!["bob".to_owned(), "cyd".to_owned()]);
    let roster = Roster::default()
        .with(AgentDefinition { agents: only, ..clerk("ada") })
        .with(clerk("bob"))
        .with(clerk("cyd"));
    let live_agents = LiveAgents::with(roster, fragile());
    for who in ["ada", "bob", "cyd"] {
        live_agents.start(who).await;
    }
    live_agents.admit(message("bob", "hello")).await;
    live_agents.at_rest("bob").await;
    live_agents.orchestrator.stop_agent(&name("bob"), None).await.expect("stopped");
    live_agents.orchestrator.notify_undefined(&name("cyd")).await.expect("told");
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.turns, state.queue.len()), (0, 4), "none of it wakes her");
    // One that never got as far as an answer is worth a turn.
    live_agents.admit(message("cyd", "bad")).await;
    live_agents
        .until(|event| {
            matches!(&event.body, EventBody::MessageQueued(queued)
            if queued.class == PeerInputClass::PeerLifecycleKickoffFailed)
        })
        .await;
    let state = live_agents.at_rest("ada").await;
    let expected = [
        (PeerInputClass::PeerLifecycleAdded, json!({"peer": "bob"})),
        (PeerInputClass::PeerLifecycleAdded, json!({"peer": "cyd"})),
        (
            PeerInputClass::PeerLifecycleRetired,
            json!({"peer": "bob", "status": "canceled", "reason": "canceled"}),
        ),
        (PeerInputClass::PeerLifecycleUnwired, json!({"peer": "cyd"})),
    ];
    let ada = state.task_id.clone();
    let shown: Vec<_> =
        live_agents.arrived(&ada).await.into_iter().map(|queued| queued.render_metadata).collect();
    let [notice, scope] = [RenderClass::SystemNotice, RenderClass::ToolScopeNotice]
        .map(|class| Some(RenderMetadata::usual(class)));
    assert_eq!(shown, [notice, notice, notice, scope, notice]);
    let received = news(&live_agents, "ada").await;
    assert_eq!(received[..4], expected);
    assert_eq!((received.len(), received[4].0), (5, PeerInputClass::PeerLifecycleKickoffFailed));
    assert_eq!((received[4].1["status"].clone(), state.turns), (json!("failed"), 1));
    let label = "user: [PEER bob: mob.peer_added] {\"peer\":\"bob\"}";
    assert_eq!(said(&state)[0], label);
}

/// Killed between a change of an agent and the notices about it, the agents that name it are
/// still notified.
#[tokio::test(start_paused = true)]
async fn missed_peer_notices_are_sent_once_after_a_restart() {
    let only = CallableAgents::Only(vec!["bob".to_owned(), "cyd".to_owned()]);
    let ada = AgentDefinition { agents: only, ..clerk("ada") };
    let roster = Roster::default().with(clerk("bob")).with(ada).with(clerk("cyd"));
    let moment = || tokio::time::advance(Duration::from_secs(1));
    for writes in 0..8 {
        let mut live_agents = LiveAgents::with(roster.clone(), fragile());
        let journal = Arc::new(MemoryJournal::new());
        let first = live_agents.on(Arc::new(Mortal::new(&journal, writes, Death::Before)));
        // She is not notified of agents that were live before her.
        let _ = first.start_agent(&name("cyd"), &antiphon_core::Provenance::Owner).await;
        moment().await;
        let _ = first.start_agent(&name("ada"), &antiphon_core::Provenance::Owner).await;
        moment().await;
        let _ = first.start_agent(&name("bob"), &antiphon_core::Provenance::Owner).await;
        moment().await;
        let _ = first.stop_agent(&name("bob"), None).await;
        first.shutdown(Duration::from_secs(1)).await;
        live_agents.team.journal = journal;
        for _ in 0..2 {
            live_agents.restart().await;
            let task = |who| live_agents.orchestrator.agent_task(who);
            let (ada, bob) = (name("ada"), name("bob"));
            if task(&ada).await.expect("a list").is_none() {
                continue;
            }
            let expected = match task(&bob).await.expect("a list").map(|bob| bob.status) {
                None => Vec::new(),
                Some(TaskStatus::Canceled) => vec![PeerInputClass::PeerLifecycleKickoffCancelled],
                Some(_) => vec![PeerInputClass::PeerLifecycleAdded],
            };
            let received = news(&live_agents, "ada").await.into_iter().map(|(class, _)| class);
            let received: Vec<PeerInputClass> = received.collect();
            assert!(received.ends_with(&expected), "{writes}: {received:?}");
            let most = if expected.is_empty() { 0 } else { 2 };
            assert!(received.len() <= most, "{writes}: {received:?}");
        }
    }
}
