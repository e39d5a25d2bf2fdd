//! Agents that answer every message of each other: they are stopped.

use antiphon_core::EventBody;
use antiphon_runtime::HOPS_MAX;

use crate::live_agents::{LiveAgents, message};
use crate::team::{otherwise, replying, says, step};

/// An agent that answers every message with these calls.
fn polite(name: &str, calls: &str) -> String {
    replying(&format!("system_contains = \"I am {name}\", results_since_user = 0"), calls)
}

async fn written(live_agents: &LiveAgents) -> usize {
    let events = live_agents.events().await.into_iter();
    let from_peers = events.filter(|event| {
        let EventBody::MessageQueued(queued) = &event.body else { return false };
        matches!(queued.from, antiphon_core::Sender::Peer(_))
    });
    from_peers.count()
}

#[tokio::test(start_paused = true)]
async fn two_agents_that_thank_each_other_are_stopped() {
    let thanks = |to: &str| step("send_message", &format!(r#"{{"to":"{to}","text":"Thanks!"}}"#));
    let text = format!(
        "name = \"polite\"\n{}{}{}",
        polite("ada", &thanks("bob")),
        polite("bob", &thanks("ada")),
        otherwise(&says("done"))
    );
    let live_agents = LiveAgents::of(&["ada", "bob"], text);
    live_agents.start("ada").await;
    live_agents.start("bob").await;
    live_agents.admit(message("ada", "begin")).await;
    let (ada, bob) = (live_agents.at_rest("ada").await, live_agents.at_rest("bob").await);
    assert_eq!(written(&live_agents).await, HOPS_MAX as usize);
    assert_eq!(ada.hops.max(bob.hops), HOPS_MAX);
    // A person can set them off again.
    live_agents.admit(message("ada", "again")).await;
    live_agents.at_rest("ada").await;
    live_agents.at_rest("bob").await;
    assert_eq!(written(&live_agents).await, 2 * HOPS_MAX as usize);
}

#[tokio::test(start_paused = true)]
async fn one_who_asks_again_for_every_answer_is_stopped() {
    let asks = step("send_request", r#"{"to":"bob","intent":"more","wait":false}"#);
    let text =
        format!("name = \"curious\"\n{}{}", polite("ada", &asks), otherwise(&says("that is all")));
    let live_agents = LiveAgents::of(&["ada", "bob"], text);
    live_agents.start("bob").await;
    live_agents.admit(message("ada", "begin")).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.hops, state.outbound_requests.len()), (HOPS_MAX, 0));
}
