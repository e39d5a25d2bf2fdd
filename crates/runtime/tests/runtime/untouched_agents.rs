//! Live agents that nothing has reached are rows of the journal: whatever is done with them works as if they ran.

use std::time::Duration;

use antiphon_core::{
    AgentDefinition, AgentState, CallableAgents, EventBody, Provenance, ResponseStatus, TaskStatus,
    WaitingFor,
};
use antiphon_runtime::{Receipt, Rejection};
use serde_json::json;

use crate::live_agents::{LiveAgents, clerk, message, name, request, said};
use crate::team::{Roster, otherwise, replying, says};

/// Answers at once, and `slow` after a while.
fn script() -> String {
    let late = format!("{{ delay_ms = 1000 }}, {}", says("Late."));
    format!("name = \"live_agents\"\n{}", replying("last_user_contains = \"slow\"", &late))
        + &otherwise(&says("Heard."))
}

/// The agents are started and nothing reaches them. With `restarted`, in an earlier process.
async fn untouched(roster: Roster, agents: &[&str], restarted: bool) -> LiveAgents {
    let mut live_agents = LiveAgents::with(roster, script());
    for agent in agents {
        live_agents.start(agent).await;
    }
    if restarted {
        live_agents.restart().await;
    }
    assert!(!live_agents.orchestrator.is_working());
    live_agents
}

async fn ada(restarted: bool) -> LiveAgents {
    untouched(Roster::default().with(clerk("ada")), &["ada"], restarted).await
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_has_ended_and_is_started_again_by_a_person_alone() {
    for restarted in [false, true] {
        let live_agents = ada(restarted).await;
        let first = live_agents.at_rest("ada").await.task_id;
        let stopped = live_agents.orchestrator.stop_agent(&name("ada"), None).await;
        assert_eq!(stopped, Ok(Some(first.clone())));
        let state = live_agents.orchestrator.task(&first).await.expect("a task");
        assert_eq!((state.status, state.turns), (TaskStatus::Canceled, 0));
        let receipt = live_agents.orchestrator.admit(message("ada", "hello")).await;
        assert!(matches!(receipt, Ok(Receipt::Rejected(Rejection::Stopped { .. }))), "{receipt:?}");
        let second = live_agents.start("ada").await;
        assert_ne!(second, first);
        live_agents.admit(message("ada", "hello")).await;
        assert_eq!(live_agents.at_rest("ada").await.turns, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_paused_keeps_what_arrives_until_it_is_resumed() {
    for restarted in [false, true] {
        let mut live_agents = ada(restarted).await;
        let task_id = live_agents.at_rest("ada").await.task_id;
        live_agents.orchestrator.pause(&task_id).await.expect("paused");
        live_agents.restart().await;
        live_agents.admit(message("ada", "hello")).await;
        let state = live_agents.at_rest("ada").await;
        assert_eq!((state.waiting_for, state.turns), (Some(WaitingFor::Resume), 0));
        live_agents.orchestrator.resume(&task_id).await.expect("resumed");
        let state = live_agents.at_rest("ada").await;
        assert_eq!(said(&state), ["user: hello", "model: Heard."]);
    }
}

#[tokio::test(start_paused = true)]
async fn starting_or_resuming_one_again_changes_nothing() {
    for restarted in [false, true] {
        let live_agents = ada(restarted).await;
        let before = live_agents.events().await;
        let again = live_agents.orchestrator.start_agent(&name("ada"), &Provenance::Owner).await;
        assert!(again.expect("started").already);
        let state = live_agents.at_rest("ada").await;
        let _ = live_agents.orchestrator.resume(&state.task_id).await;
        let state = live_agents.at_rest("ada").await;
        assert_eq!((state.agent_state, state.turns), (AgentState::Idle, 0));
        assert_eq!(live_agents.events().await, before);
        live_agents.admit(message("ada", "hello")).await;
        assert_eq!(live_agents.at_rest("ada").await.turns, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_one_is_answered_also_late() {
    for (restarted, intent) in [(false, "count"), (true, "count"), (false, "slow"), (true, "slow")]
    {
        let live_agents = ada(restarted).await;
        let (id, _) = live_agents.admit(request("ada", intent, json!(1))).await;
        assert_eq!(live_agents.reply(id).await.status, ResponseStatus::Completed);
    }
}

#[tokio::test(start_paused = true)]
async fn notices_of_peers_reach_one() {
    for restarted in [false, true] {
        let only = CallableAgents::Only(vec!["bob".to_owned()]);
        let roster = Roster::default()
            .with(AgentDefinition { agents: only, ..clerk("ada") })
            .with(clerk("bob"));
        let mut live_agents = untouched(roster, &["ada"], restarted).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        live_agents.start("bob").await;
        let state = live_agents.at_rest("ada").await;
        assert_eq!((state.queue.len(), state.turns), (1, 0), "it wakes nobody");
        live_agents.restart().await;
        live_agents.orchestrator.stop_agent(&name("bob"), None).await.expect("stopped");
        // Bob never answered anything: that is worth a turn.
        live_agents.until(|event| matches!(event.body, EventBody::MessageAppended(_))).await;
        let state = live_agents.at_rest("ada").await;
        assert_eq!((state.queue.len(), state.turns), (0, 1));
        assert!(said(&state)[0].contains("mob.peer_added"), "{:?}", said(&state));
    }
}
