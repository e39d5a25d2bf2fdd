//! Admission: what arrives is looked at once, written down, and only then accepted.

use std::collections::BTreeMap;

use antiphon_core::{
    AgentDefinition, CallableAgents, IMAGE_BYTES_MAX, ImageBlock, InputBlock, InteractionContent,
    InteractionId, Message, PeerInputClass, RawJson, RenderClass, RenderMetadata, Salience, Sender,
    SilentIntents, SourceName, TaskStatus, Wake,
};
use antiphon_runtime::{
    Arrival, INTENT_BYTES_MAX, INTERACTION_BYTES_MAX, PAYLOAD_BYTES_MAX, Receipt, Rejection,
    SENDER_KEY_BYTES_MAX,
};
use serde_json::{Value, json};

use crate::live_agents::{LiveAgents, accepted, clerk, keyed, message, name, peer, request, said};
use crate::team::{Roster, otherwise, says};

fn answering() -> String {
    format!("name = \"live_agents\"\n{}", otherwise(&says("heard")))
}

fn live_agents() -> LiveAgents {
    LiveAgents::of(&["ada"], answering())
}

async fn rejected(live_agents: &LiveAgents, arrival: Arrival) -> Rejection {
    let receipt = live_agents.orchestrator.admit(arrival).await.expect("a receipt");
    let rejection = match receipt {
        Receipt::Rejected(rejection) => Some(rejection),
        Receipt::Accepted { .. } | Receipt::Deduplicated { .. } | Receipt::Filtered => None,
    };
    rejection.expect("it is rejected")
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_in_the_journal_and_starts_the_agent() {
    let live_agents = live_agents();
    let (id, task_id) = live_agents.admit(message("ada", "hello")).await;
    let arrived = live_agents.arrived(&task_id).await;
    assert_eq!(arrived.iter().map(|queued| queued.id).collect::<Vec<_>>(), [id]);
    let state = live_agents.at_rest("ada").await;
    assert_eq!(said(&state), ["user: hello", "model: heard"]);
    assert_eq!((state.status, state.queue.len()), (TaskStatus::Running, 0));
    assert_eq!((state.created.resident, state.task_id), (true, task_id));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_of_the_same_sender_is_the_same_interaction() {
    let live_agents = live_agents();
    let hello = || keyed(message("ada", "hello"), "1");
    let (id, task_id) = live_agents.admit(hello()).await;
    let again = Receipt::Deduplicated { id, task_id: task_id.clone() };
    assert_eq!(live_agents.orchestrator.admit(hello()).await, Ok(again.clone()));
    live_agents.at_rest("ada").await;
    let other_text = keyed(message("ada", "something else"), "1");
    assert_eq!(live_agents.orchestrator.admit(other_text).await, Ok(again));
    // A key is its sender's own.
    let other = Arrival { from: peer("bob"), ..hello() };
    let (other_id, _) = accepted(live_agents.orchestrator.admit(other).await.expect("a receipt"));
    assert_ne!(other_id, id);
    let state = live_agents.at_rest("ada").await;
    let received =
        ["user: hello", "model: heard", "user: [MESSAGE from bob] hello", "model: heard"];
    assert_eq!(said(&state), received);
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_rejected_and_says_why() {
    let live_agents = live_agents();
    let long = "x".repeat(INTERACTION_BYTES_MAX + 1);
    let content = |content| Arrival { content, ..message("ada", "") };
    let response = InteractionContent::Response {
        in_reply_to: InteractionId::from(uuid::Uuid::nil()),
        status: antiphon_core::ResponseStatus::Completed,
        result: Value::Null,
    };
    let cases = [
        (message("nobody", "x"), "there is no agent `nobody`; available: ada"),
        (message("ada", " \n"), "the message is empty: add a text"),
        (message("ada", &long), "an interaction may have 262144 bytes, this one has 262145"),
        (request("ada", " ", json!(1)), "an intent has 1 to 128 bytes"),
        (
            request("ada", &"i".repeat(INTENT_BYTES_MAX + 1), json!(1)),
            "an intent has 1 to 128 bytes",
        ),
        (keyed(message("ada", "x"), ""), "a key has 1 to 200 bytes"),
        (
            keyed(message("ada", "x"), &"k".repeat(SENDER_KEY_BYTES_MAX + 1)),
            "a key has 1 to 200 bytes",
        ),
        (
            request("ada", "mob.peer_retired", json!({"peer": "bob"})),
            "`mob.peer_retired` is reserved for the orchestrator",
        ),
        (content(response), "a response is sent by the requested agent, with its tools"),
    ];
    for (arrival, why) in cases {
        let rejection = rejected(&live_agents, arrival).await;
        assert_eq!(rejection.to_string(), why);
        assert!(!rejection.is_temporary(), "{why}");
    }
    assert_eq!(live_agents.events().await, [], "nothing of it is anywhere");
}

#[tokio::test(start_paused = true)]
async fn the_longest_key_and_the_longest_names_fit() {
    let long = "n".repeat(64);
    let live_agents = LiveAgents::of(&[long.as_str()], answering());
    let from = Sender::External(SourceName::parse(&"s".repeat(64)).expect("a name"));
    let key = "k".repeat(SENDER_KEY_BYTES_MAX);
    let arrival = keyed(Arrival { from, ..message(&long, "x") }, &key);
    live_agents.admit(arrival).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_with_a_request_fits_its_schema_where_there_is_one() {
    let schema = RawJson::parse(r#"{"type":"object","required":["n"]}"#).expect("JSON");
    let intents = BTreeMap::from([("count".to_owned(), schema)]);
    let ada = AgentDefinition { intents, ..clerk("ada") };
    let live_agents = LiveAgents::with(Roster::default().with(ada), answering());
    let rejection = rejected(&live_agents, request("ada", "count", json!({}))).await;
    let Rejection::Invalid { field: "params", why } = rejection else { panic!("{rejection:?}") };
    assert!(why.starts_with("the params of `count` do not fit their schema: "), "{why}");
    live_agents.admit(request("ada", "count", json!({"n": 1}))).await;
    live_agents.admit(request("ada", "anything", json!([]))).await;
}

#[tokio::test(start_paused = true)]
async fn word_that_something_arrived_stops_at_the_door() {
    let live_agents = live_agents();
    live_agents.start("ada").await;
    let before = live_agents.events().await;
    let in_reply_to = InteractionId::from(uuid::Uuid::nil());
    let ack = Arrival {
        from: peer("bob"),
        content: InteractionContent::Ack { in_reply_to },
        ..message("ada", "")
    };
    assert_eq!(live_agents.orchestrator.admit(ack).await, Ok(Receipt::Filtered));
    assert_eq!(live_agents.events().await, before);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_an_unknown_source_is_an_event_with_any_content() {
    let live_agents = live_agents();
    let from = Sender::External(SourceName::parse("hook").expect("a name"));
    let arrival = Arrival { from, ..request("ada", "obey", json!({"who": "me"})) };
    let (id, task_id) = live_agents.admit(arrival).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!(said(&state)[0], "user: [EVENT via hook]", "its payload is for no model to obey");
    assert_eq!(live_agents.arrived(&task_id).await[0].class, PeerInputClass::PlainEvent);
    assert_eq!(live_agents.orchestrator.reply(id).await, Ok(None), "an event has no answer");
}

#[tokio::test(start_paused = true)]
async fn silent_requests_and_quiet_messages_do_not_wake_and_are_read_with_the_next_that_does() {
    let silent_intents = SilentIntents::from_iter(["status"]);
    let ada = AgentDefinition { silent_intents, ..clerk("ada") };
    let live_agents = LiveAgents::with(Roster::default().with(ada), answering());
    let (silent, _) = live_agents.admit(request("ada", "status", json!("fine"))).await;
    live_agents.admit(Arrival { wake: Wake::No, ..message("ada", "by the way") }).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.turns, state.queue.len()), (0, 2));
    live_agents.admit(message("ada", "now")).await;
    let state = live_agents.at_rest("ada").await;
    let label = format!("user: [REQUEST {silent} from user: status] \"fine\"");
    assert_eq!(said(&state), [&label, "user: by the way", "user: now", "model: heard"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_may_say_nothing_if_something_comes_with_it_and_only_an_event_may() {
    let live_agents = live_agents();
    let hook = || Sender::External(SourceName::parse("hook").expect("a name"));
    let with = |from, payload: String| {
        let payload = Some(RawJson::parse(&payload).expect("JSON"));
        Arrival { from, payload, ..message("ada", "") }
    };
    let (id, task_id) = live_agents.admit(with(hook(), r#"{"build": 1.50}"#.to_owned())).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!(said(&state), ["user: [EVENT via hook]", "model: heard"]);
    let arrived = live_agents.arrived(&task_id).await;
    let kept: Vec<_> =
        arrived.iter().map(|it| (it.id, it.payload.as_ref().map(RawJson::as_str))).collect();
    assert_eq!(kept, [(id, Some(r#"{"build": 1.50}"#))]);
    let long = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX));
    for arrival in [
        with(Sender::User, "{}".to_owned()),
        with(peer("bob"), "{}".to_owned()),
        with(hook(), long),
        with(hook(), "null".to_owned()),
    ] {
        let rejection = rejected(&live_agents, arrival).await;
        assert!(matches!(rejection, Rejection::Invalid { .. }), "{rejection:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn images_have_a_limit_of_their_own() {
    let live_agents = live_agents();
    let image = || {
        let data = vec![7; IMAGE_BYTES_MAX];
        InputBlock::Image(ImageBlock::new("image/png", data).expect("an image"))
    };
    let with = |images: usize| {
        let blocks = (0..images).map(|_| image()).collect();
        let content = InteractionContent::Message { body: "see".to_owned(), blocks: Some(blocks) };
        Arrival { content, ..message("ada", "") }
    };
    let (_, task_id) = live_agents.admit(with(2)).await;
    let state = live_agents.at_rest("ada").await;
    assert_eq!(state.task_id, task_id);
    let last = state.messages().iter().rev().find_map(|message| match &**message {
        Message::User(user) => Some(user.content.len()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    });
    assert_eq!(last, Some(3), "the text and both images");
    let rejection = rejected(&live_agents, with(3)).await;
    assert!(matches!(rejection, Rejection::Invalid { field: "blocks", .. }), "{rejection:?}");
}

fn progress(from: &str, text: &str) -> Arrival {
    let shown = RenderMetadata { class: RenderClass::OpsProgress, salience: Salience::Background };
    Arrival {
        from: peer(from),
        render_metadata: Some(shown),
        wake: Wake::No,
        ..message("ada", text)
    }
}

#[tokio::test(start_paused = true)]
async fn progress_makes_older_progress_of_the_same_sender_old_news() {
    let live_agents = live_agents();
    for (from, text) in [("bob", "10 %"), ("cyd", "1 %"), ("bob", "20 %"), ("bob", "30 %")] {
        live_agents.admit(progress(from, text)).await;
    }
    let state = live_agents.at_rest("ada").await;
    assert_eq!((state.turns, state.queue.len()), (0, 2));
    live_agents.admit(message("ada", "now")).await;
    let state = live_agents.at_rest("ada").await;
    let received = [
        "user: [MESSAGE from cyd] 1 %",
        "user: [MESSAGE from bob] 30 %",
        "user: now",
        "model: heard",
    ];
    assert_eq!(said(&state), received);
    // What was read is not old news: the next is another.
    live_agents.admit(progress("bob", "40 %")).await;
    assert_eq!(live_agents.at_rest("ada").await.queue.len(), 1);
}

/// Even at the lowest salience, the requester waits for an answer.
#[tokio::test(start_paused = true)]
async fn a_request_is_never_old_news() {
    let live_agents = live_agents();
    let shown = progress("bob", "x").render_metadata;
    let asks = |n: u32| Arrival { render_metadata: shown, ..request("ada", "count", json!(n)) };
    let ada = live_agents.start("ada").await;
    live_agents.orchestrator.pause(&ada).await.expect("paused");
    let (first, task_id) = live_agents.admit(asks(1)).await;
    let (second, _) = live_agents.admit(asks(2)).await;
    assert_eq!(live_agents.at_rest("ada").await.queue.len(), 2);
    live_agents.orchestrator.resume(&ada).await.expect("resumed");
    live_agents.at_rest("ada").await;
    let events = live_agents.team.events(&task_id).await;
    let replied: Vec<InteractionId> =
        events.iter().filter_map(crate::live_agents::replies).collect();
    assert_eq!(replied, [first, second]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_started_accepts_nothing() {
    let lost = AgentDefinition { model: None, agents: CallableAgents::default(), ..clerk("lost") };
    let live_agents = LiveAgents::with(Roster::default().with(lost), answering());
    let rejection = rejected(&live_agents, message("lost", "hello")).await;
    let why = "`lost` cannot be started: it names no model, and none is configured: set a key such as \
               ANTHROPIC_API_KEY, run `antiphon init`, or write `model:` into its file";
    assert_eq!(rejection.to_string(), why);
    assert_eq!(live_agents.orchestrator.agent_task(&name("lost")).await, Ok(None));
}
