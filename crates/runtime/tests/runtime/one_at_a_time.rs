//! A turn is about one request, and what waits is never too much for one turn.

use antiphon_core::{EventBody, ResponseStatus, SilentIntents, Wake};
use antiphon_runtime::{Arrival, INBOX_OF_SENDER_MAX, QUIET_MESSAGES_MAX, Receipt};
use serde_json::json;

use crate::live_agents::{LiveAgents, clerk, message, request, said, steering};
use crate::team::{Roster, otherwise, replying, says, step};

fn echo() -> String {
    format!("name = \"echo\"\n{}", otherwise("{ text = '''About: {{last_user}}''' }"))
}

fn quiet(arrival: Arrival) -> Arrival {
    Arrival { wake: Wake::No, ..arrival }
}

#[tokio::test(start_paused = true)]
async fn the_last_word_answers_the_request_that_the_turn_is_about_and_no_other() {
    let mut bob = clerk("bob");
    bob.silent_intents = ["hush"].into_iter().collect::<SilentIntents>();
    let live_agents = LiveAgents::with(Roster::default().with(bob), echo());
    let (hush, _) = live_agents.admit(request("bob", "hush", json!(null))).await;
    let (along, _) = live_agents.admit(quiet(request("bob", "along", json!(null)))).await;
    let (first, _) = live_agents.admit(request("bob", "first", json!(null))).await;
    let steered = Arrival { mode: steering("bob", "").mode, ..request("bob", "steered", json!(1)) };
    let (steered, _) = live_agents.admit(steered).await;
    for (id, intent) in [(first, "first"), (steered, "steered")] {
        let replied = live_agents.reply(id).await;
        assert_eq!(replied.status, ResponseStatus::Completed);
        let result = replied.result.as_str().expect("a text").to_owned();
        assert!(result.contains(&format!("from user: {intent}]")), "{result}");
    }
    // The others are read, and time out: the agent answered none of them.
    for id in [hush, along] {
        assert_eq!(live_agents.reply(id).await.result["code"], "timed_out");
    }
}

#[tokio::test(start_paused = true)]
async fn quiet_messages_do_not_block_their_sender_and_are_read_in_small_batches() {
    let live_agents = LiveAgents::of(&["bob"], echo());
    for n in 0..INBOX_OF_SENDER_MAX {
        live_agents.admit(quiet(message("bob", &format!("line {n}")))).await;
    }
    let one_more = live_agents.orchestrator.admit(quiet(message("bob", "one more"))).await;
    assert!(matches!(one_more, Ok(Receipt::Rejected(reason)) if reason.is_temporary()));
    live_agents.admit(message("bob", "wake up")).await;
    let state = live_agents.at_rest("bob").await;
    assert_eq!(state.queue.len(), INBOX_OF_SENDER_MAX - QUIET_MESSAGES_MAX);
    assert_eq!(said(&state).len(), QUIET_MESSAGES_MAX + 2);
}

#[tokio::test(start_paused = true)]
async fn an_inbox_full_of_long_ones_can_be_read_and_carried_over() {
    let live_agents = LiveAgents::of(&["bob"], echo());
    let long = "x".repeat(200 * 1024);
    let mut accepted = 0;
    while let Receipt::Accepted { .. } =
        live_agents.orchestrator.admit(quiet(message("bob", &long))).await.expect("a receipt")
    {
        accepted += 1;
    }
    assert!((50..70).contains(&accepted), "{accepted}");
    let stopped = live_agents.orchestrator.stop_agent(&crate::live_agents::name("bob"), None).await;
    stopped.expect("stopped");
    live_agents.start("bob").await;
    live_agents.admit(message("bob", "wake up")).await;
    let state = live_agents.at_rest("bob").await;
    // A megabyte of them, and what woke it.
    assert_eq!(state.queue.len(), accepted - 5);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_started_again_hears_the_answer_it_asked_for_before() {
    let asks = step("send_request", r#"{"to":"bob","intent":"count","wait":false}"#);
    let text = "name = \"live_agents\"\n".to_owned()
        + &replying(
            "system_contains = \"I am ada\", last_user_contains = \"begin\", results_since_user = 0",
            &asks,
        )
        + &replying(
            "system_contains = \"I am bob\"",
            &format!("{{ delay_ms = 9000 }}, {}", says("three")),
        )
        + &otherwise("{ text = '''Heard: {{last_user}}''' }");
    let live_agents = LiveAgents::of(&["ada", "bob"], text);
    live_agents.start("bob").await;
    live_agents.admit(message("ada", "begin")).await;
    live_agents.until(|event| matches!(event.body, EventBody::RequestSent(_))).await;
    let ada = crate::live_agents::name("ada");
    live_agents.orchestrator.stop_agent(&ada, None).await.expect("stopped");
    live_agents.start("ada").await;
    live_agents.until(|event| matches!(event.body, EventBody::Replied(_))).await;
    let state = live_agents.at_rest("ada").await;
    let received = said(&state).pop().expect("something");
    assert!(received.starts_with("model: Heard: [RESPONSE to "), "{received}");
    assert!(received.contains("\"three\""), "{received}");
    assert_eq!(state.outbound_requests.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_behind_one_that_fails_the_agent_are_answered() {
    let text = "name = \"live_agents\"\n".to_owned()
        + &replying(
            "last_user_contains = \"boom\"",
            "{ delay_ms = 5000 }, { error = { kind = \"permission\", message = \"no\" } }",
        )
        + &otherwise(&says("fine"));
    let live_agents = LiveAgents::of(&["bob"], text);
    let (boom, _) = live_agents.admit(request("bob", "boom", json!(null))).await;
    let (calm, _) = live_agents.admit(request("bob", "calm", json!(null))).await;
    for id in [boom, calm] {
        assert_eq!(live_agents.reply(id).await.result["code"], "failed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_recorded_once() {
    let live_agents = LiveAgents::of(&["bob"], echo());
    let key = || antiphon_core::port::IdempotencyKey("order:1".to_owned());
    let orchestrator = &live_agents.orchestrator;
    assert_eq!(orchestrator.recorded(&key()).await.expect("a journal"), None);
    let first = orchestrator.record("stop bob", json!({"n": 1}), key()).await;
    let again = orchestrator.record("stop bob", json!({"n": 2}), key()).await;
    assert_eq!((first.expect("kept"), again.expect("kept")), (json!({"n": 1}), json!({"n": 1})));
    assert_eq!(orchestrator.recorded(&key()).await.expect("kept"), Some(json!({"n": 1})));
}
