//! Turns that begin with what arrived.

use std::num::NonZeroU32;

use antiphon_core::{
    AgentDefinition, EventBody, RenderClass, RenderMetadata, Salience, TaskStatus, WaitingFor,
};
use antiphon_runtime::Arrival;
use serde_json::json;

use crate::live_agents::{LiveAgents, clerk, message, peer, request, said, steering};
use crate::team::{Roster, otherwise, replying, says, step};

/// Slow to the first message, which needs a tool; quick to the others.
fn slow() -> String {
    let first = format!("{}, {{ delay_ms = 1000 }}, {}", says("One."), step("look", "{}"));
    format!("name = \"live_agents\"\n{}", replying("turn = 0", &first))
        + &replying("turn = 1", &format!("{{ delay_ms = 1000 }}, {}", says("Two.")))
        + &otherwise(&says("Heard: {{last_user}}"))
}

/// An agent that is in the middle of its first answer.
async fn thinking(script: String) -> LiveAgents {
    let live_agents = LiveAgents::of(&["ada"], script);
    let mut deltas = live_agents.orchestrator.deltas();
    live_agents.admit(message("ada", "go")).await;
    deltas.recv().await.expect("a delta");
    live_agents
}

#[tokio::test(start_paused = true)]
async fn steering_joins_the_turn_and_the_queue_waits_for_the_next() {
    let live_agents = thinking(slow()).await;
    live_agents.admit(message("ada", "later")).await;
    live_agents.admit(steering("ada", "left")).await;
    let state = live_agents.at_rest("ada").await;
    let expected = [
        "user: go",
        "calls: look",
        "result: did look {}",
        "user: left",
        "model: Two.",
        "user: later",
        "model: Heard: later",
    ];
    assert_eq!(said(&state), expected);
    assert_eq!(state.status, TaskStatus::Running);
}

#[tokio::test(start_paused = true)]
async fn an_idle_agent_reads_what_steers_as_it_reads_anything_else() {
    let script = format!("name = \"live_agents\"\n{}", otherwise(&says("{{turn}}")));
    let live_agents = LiveAgents::of(&["ada"], script);
    live_agents.admit(steering("ada", "one")).await;
    assert_eq!(said(&live_agents.at_rest("ada").await), ["user: one", "model: 0"]);
    live_agents.admit(message("ada", "two")).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!(said(&state), ["user: one", "model: 0", "user: two", "model: 1"]);
}

#[tokio::test(start_paused = true)]
async fn the_more_salient_are_read_first_and_say_so() {
    let live_agents = thinking(slow()).await;
    let with = |salience, text: &str| {
        let shown = RenderMetadata { class: RenderClass::PeerMessage, salience };
        Arrival { from: peer("bob"), render_metadata: Some(shown), ..message("ada", text) }
    };
    live_agents.admit(with(Salience::Background, "a")).await;
    live_agents.admit(with(Salience::Normal, "b")).await;
    live_agents.admit(with(Salience::Urgent, "c")).await;
    live_agents.admit(with(Salience::Important, "d")).await;
    let state = live_agents.at_rest("ada").await;
    let expected = [
        "user: [MESSAGE from bob, urgent] c",
        "user: [MESSAGE from bob, important] d",
        "user: [MESSAGE from bob] b",
        "user: [MESSAGE from bob] a",
    ];
    let received: Vec<String> =
        said(&state).into_iter().filter(|line| line.contains("bob")).take(4).collect();
    assert_eq!(received, expected);
}

#[tokio::test(start_paused = true)]
async fn each_request_has_a_turn_of_its_own_and_its_last_word_is_the_answer() {
    let live_agents = thinking(slow()).await;
    let (first, task_id) = live_agents.admit(request("ada", "count", json!({"to": 1}))).await;
    let (second, _) = live_agents.admit(request("ada", "count", json!({"to": 2}))).await;
    live_agents.admit(message("ada", "and you?")).await;
    let state = live_agents.at_rest("ada").await;
    let requested = |id, n| format!("[REQUEST {id} from user: count] {{\"to\":{n}}}");
    let (one, two) = (requested(first, 1), requested(second, 2));
    let expected = [
        format!("user: {one}"),
        format!("model: Heard: {one}"),
        format!("user: {two}"),
        format!("model: Heard: {two}"),
        "user: and you?".to_owned(),
        "model: Heard: and you?".to_owned(),
    ];
    assert_eq!(said(&state)[4..], expected);
    for (id, word) in [(first, &one), (second, &two)] {
        let replied =
            live_agents.orchestrator.reply(id).await.expect("a journal").expect("an answer");
        assert_eq!(replied.result, json!(format!("Heard: {word}")));
    }
    let events = live_agents.team.events(&task_id).await;
    let replies = events.iter().filter(|body| matches!(body, EventBody::Replied(_))).count();
    assert_eq!(replies, 2);
}

#[tokio::test(start_paused = true)]
async fn a_paused_agent_keeps_what_arrives_until_it_is_resumed() {
    let mut live_agents = thinking(slow()).await;
    let task_id = live_agents.start("ada").await;
    live_agents.orchestrator.pause(&task_id).await.expect("paused");
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.status, state.turns), (TaskStatus::InputRequired, 1));
    live_agents.admit(message("ada", "later")).await;
    live_agents.admit(steering("ada", "left")).await;
    let state = live_agents.at_rest("ada").await;
    let waits = (state.waiting_for, state.turns, state.queue.len());
    assert_eq!(waits, (Some(WaitingFor::Resume), 1, 2));
    // It keeps waiting after a restart.
    live_agents.restart().await;
    live_agents.admit(message("ada", "and later")).await;
    assert_eq!(live_agents.at_rest("ada").await.turns, 1);
    live_agents.orchestrator.resume(&task_id).await.expect("resumed");
    let state = live_agents.at_rest("ada").await;
    let received = said(&state);
    assert_eq!(received[3..5], ["user: left", "model: Two."]);
    assert_eq!(received[5..7], ["user: later", "user: and later"]);
    assert_eq!((received.len(), state.queue.len()), (8, 0));
}

/// The clock answers a request that waits behind a pause, also after a restart.
#[tokio::test(start_paused = true)]
async fn a_paused_agent_does_not_delay_an_answer_beyond_the_deadline() {
    let mut live_agents = thinking(slow()).await;
    let task_id = live_agents.start("ada").await;
    live_agents.orchestrator.pause(&task_id).await.expect("paused");
    live_agents.at_rest("ada").await;
    let until = Some(live_agents.clock.now() + chrono::TimeDelta::seconds(60));
    let (id, _) = live_agents.admit(Arrival { until, ..request("ada", "count", json!(1)) }).await;
    live_agents.restart().await;
    let replied = live_agents.reply(id).await;
    assert_eq!(replied.result["code"], "timed_out");
    assert_eq!(live_agents.at_rest("ada").await.waiting_for, Some(WaitingFor::Resume));
}

#[tokio::test(start_paused = true)]
async fn limits_of_turns_count_from_when_it_was_woken() {
    let mut ada = clerk("ada");
    ada.limits.turns_max = NonZeroU32::new(3);
    let twice = "results_since_user = 2, last_user_contains = \"twice\"";
    let script = format!("name = \"live_agents\"\n{}", replying(twice, &says("done")))
        + &otherwise(&step("look", "{}"));
    let live_agents = LiveAgents::with(Roster::default().with(ada), script);
    for n in 1..=3 {
        live_agents.admit(message("ada", "twice")).await;
        let state = live_agents.at_rest("ada").await;
        assert_eq!((state.status, state.turns), (TaskStatus::Running, 3 * n));
    }
    let (id, task_id) = live_agents.admit(request("ada", "forever", json!(1))).await;
    let replied = live_agents.reply(id).await;
    assert_eq!(replied.result, json!({"code": "failed", "error": "the agent has failed"}));
    let state = live_agents.orchestrator.task(&task_id).await.expect("a task");
    let detail = state.detail.expect("a reason");
    assert_eq!((state.turns, &detail["limit"]), (12, &json!({"limit": "turns", "max": 3})));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_started_waits_and_is_started_once() {
    let script = format!("name = \"live_agents\"\n{}", otherwise(&says("heard")));
    let live_agents = LiveAgents::with(
        Roster::default().with(AgentDefinition { description: "x".to_owned(), ..clerk("ada") }),
        script,
    );
    let first = live_agents.start("ada").await;
    assert_eq!(live_agents.start("ada").await, first);
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.turns, said(&state).len()), (0, 0));
    assert!(state.created.system_prompt.starts_with("I am ada.\n\nYou are always there."));
    assert_eq!(live_agents.team.tasks().await.len(), 1);
}
