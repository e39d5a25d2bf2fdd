//! Agents that would wait for each other: the request that closes the cycle is refused at once.

use std::time::Duration;

use antiphon_core::{AgentState, EventBody};
use antiphon_runtime::TaskState;
use serde_json::{Value, json};

use crate::live_agents::{LiveAgents, message};
use crate::team::{calls, otherwise, replying, results, says, step};

fn asks(to: &str) -> String {
    step("send_request", &format!(r#"{{"to":"{to}","intent":"help","timeout_s":600}}"#))
}

/// Each agent does its step when it is asked, and then says what came of it.
fn each(steps: &[(&str, &str)]) -> String {
    let mut text = "name = \"live_agents\"\n".to_owned();
    for (who, does) in steps {
        let when = format!("system_contains = \"I am {who}\", results_since_user = 0");
        text.push_str(&replying(&when, does));
    }
    text + &otherwise(&says("{{last_result}}"))
}

/// The error and the text of the only result of a task.
fn refusal(state: &TaskState) -> (Value, String) {
    let reported: Value = serde_json::from_str(&results(state)[0].0).expect("JSON");
    let message = reported["message"].as_str().unwrap_or_default().to_owned();
    (reported["error"].clone(), message)
}

async fn started(live_agents: &LiveAgents, names: &[&str]) {
    for name in names {
        live_agents.start(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_back_to_one_who_waits_is_refused_with_the_cycle() {
    let live_agents =
        LiveAgents::of(&["ada", "bob"], each(&[("ada", &asks("bob")), ("bob", &asks("ada"))]));
    started(&live_agents, &["ada", "bob"]).await;
    let began = tokio::time::Instant::now();
    live_agents.admit(message("ada", "go")).await;
    let (ada, bob) = (live_agents.at_rest("ada").await, live_agents.at_rest("bob").await);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let (error, message) = refusal(&bob);
    assert_eq!(error, "wait_cycle");
    assert!(message.contains("bob waits for ada waits for bob"), "{message}");
    let answered: Value = serde_json::from_str(&results(&ada)[0].0).expect("JSON");
    assert_eq!(answered["status"], "completed", "the first request is answered: {answered}");
    for state in [ada, bob] {
        assert_eq!((state.inbound_requests.len(), state.outbound_requests.len()), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cycle_of_any_length_is_found() {
    let names = ["ada", "bob", "cyd", "dan"];
    let steps =
        [("ada", asks("bob")), ("bob", asks("cyd")), ("cyd", asks("dan")), ("dan", asks("ada"))];
    let steps: Vec<(&str, &str)> = steps.iter().map(|(who, does)| (*who, does.as_str())).collect();
    let live_agents = LiveAgents::of(&names, each(&steps));
    started(&live_agents, &names).await;
    live_agents.admit(message("ada", "go")).await;
    live_agents.at_rest("ada").await;
    let (error, message) = refusal(&live_agents.at_rest("dan").await);
    assert_eq!(error, "wait_cycle");
    let cycle = "dan waits for ada waits for bob waits for cyd waits for dan";
    assert!(message.contains(cycle), "{message}");
    for name in ["bob", "cyd"] {
        let reported: Value =
            serde_json::from_str(&results(&live_agents.at_rest(name).await)[0].0).expect("JSON");
        assert_eq!(reported["status"], "completed", "{name}: {reported}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cycle_through_a_called_agent_is_found() {
    let call = calls(r#"{"agent":"bob","prompt":"help"}"#);
    let live_agents =
        LiveAgents::of(&["ada", "bob"], each(&[("ada", &call), ("bob", &asks("ada"))]));
    started(&live_agents, &["ada"]).await;
    live_agents.admit(message("ada", "go")).await;
    let ada = live_agents.at_rest("ada").await;
    let reported: Value = serde_json::from_str(&results(&ada)[0].0).expect("JSON");
    let content = reported["result"]["content"].as_str().expect("a text");
    assert!(content.contains("wait_cycle"), "{reported}");
    assert!(content.contains("bob waits for ada waits for bob"), "{reported}");
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_found_after_a_restart() {
    let late = format!("{{ delay_ms = 5000 }}, {}", asks("ada"));
    let text = each(&[("ada", &asks("bob")), ("bob", &late)]);
    let mut live_agents = LiveAgents::of(&["ada", "bob"], text);
    started(&live_agents, &["ada", "bob"]).await;
    live_agents.admit(message("ada", "go")).await;
    live_agents.until(|event| matches!(event.body, EventBody::RequestSent(_))).await;
    live_agents.restart().await;
    live_agents.at_rest("ada").await;
    let (error, _) = refusal(&live_agents.at_rest("bob").await);
    assert_eq!(error, "wait_cycle");
}

#[tokio::test(start_paused = true)]
async fn one_who_has_answered_may_ask_back() {
    let bob = "system_contains = \"I am bob\"";
    let text = "name = \"live_agents\"\n".to_owned()
        + &replying(
            "system_contains = \"I am ada\", last_user_contains = \"go\", results_since_user = 0",
            &asks("bob"),
        )
        + &replying(
            &format!("{bob}, results_since_user = 0"),
            &step("reply", r#"{"text":"here you are"}"#),
        )
        + &replying(&format!("{bob}, results_since_user = 1"), &asks("ada"))
        + &otherwise(&says("done"));
    let live_agents = LiveAgents::of(&["ada", "bob"], text);
    started(&live_agents, &["ada", "bob"]).await;
    live_agents.admit(message("ada", "go")).await;
    live_agents.at_rest("ada").await;
    let bob = live_agents.at_rest("bob").await;
    let back: Value = serde_json::from_str(&results(&bob)[1].0).expect("JSON");
    assert_eq!((&back["status"], &back["result"]), (&json!("completed"), &json!("done")));
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_one_id_and_counts_over_its_life() {
    let mut live_agents = LiveAgents::of(&["ada"], each(&[("ada", &says("yes"))]));
    let listed = async |live_agents: &LiveAgents| {
        let mut agents =
            live_agents.orchestrator.agents(std::num::NonZeroUsize::MAX).await.expect("list");
        assert_eq!(agents.len(), 1, "{agents:?}");
        agents.remove(0).status
    };
    live_agents.start("ada").await;
    let first = listed(&live_agents).await;
    assert_eq!((first.state, first.messages_processed), (AgentState::Idle, 0));
    let id = uuid::Uuid::from(first.id);
    assert_eq!(id.get_version_num(), 4, "{id}");
    for count in 1..=3 {
        live_agents.admit(message("ada", "again")).await;
        live_agents.at_rest("ada").await;
        if count == 2 {
            live_agents.restart().await;
        }
        let now = listed(&live_agents).await;
        assert_eq!((now.id, now.messages_processed), (first.id, count));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(listed(&live_agents).await, now, "an agent that does nothing does not change");
    }
    // Those that wait are read in one turn.
    for _ in 0..3 {
        live_agents.admit(message("ada", "and again")).await;
    }
    live_agents.at_rest("ada").await;
    assert_eq!(listed(&live_agents).await.messages_processed, 6);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_for_another_is_at_its_tool_call() {
    let slow = format!("{{ delay_ms = 60000 }}, {}", says("three"));
    let live_agents =
        LiveAgents::of(&["ada", "bob"], each(&[("ada", &asks("bob")), ("bob", &slow)]));
    started(&live_agents, &["ada", "bob"]).await;
    live_agents.admit(message("ada", "go")).await;
    live_agents.until(|event| matches!(event.body, EventBody::RequestSent(_))).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let seen = async || {
        let agents =
            live_agents.orchestrator.agents(std::num::NonZeroUsize::MAX).await.expect("list");
        let find = |name: &str| agents.iter().find(|it| it.agent == name).expect("live").clone();
        (find("ada").status, find("bob").status)
    };
    let (ada, bob) = seen().await;
    assert_eq!((ada.state, bob.state), (AgentState::ToolCall, AgentState::Thinking));
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(seen().await, (ada.clone(), bob), "neither has done anything");
    live_agents.at_rest("ada").await;
    let after = seen().await.0;
    assert_eq!((after.id, after.state), (ada.id, AgentState::Idle));
    assert_eq!(after.messages_processed, 2, "that bob is there, and the message");
}
