//! Agents that are always there and work elsewhere: their loop is there, what others wait for is
//! answered here.

use std::time::Duration;

use antiphon_core::{
    AgentDefinition, EventBody, InteractionContent, InteractionId, Replied, ResponseStatus,
    RunnerConfig, Runtime, TaskStatus,
};
use antiphon_runtime::{Orchestrator, Receipt, TaskState};
use serde_json::{Value, json};

use crate::live_agents::{accepted, at_rest, clerk, keyed, message, name, request, said};
use crate::team::{Roster, Team, otherwise, replying, results, says, step};

/// Ada works elsewhere, Bob works here.
fn team(replies: &str) -> Team {
    let runtimes = vec![Runtime::Runner(RunnerConfig::new("elsewhere"))];
    let ada = AgentDefinition { runtimes, ..clerk("ada") };
    let text =
        format!("name = \"live_agents\"\n{replies}") + &otherwise(&says("Heard: {{last_user}}"));
    Team::new(text, Roster::default().with(ada).with(clerk("bob")))
}

async fn admit(orchestrator: &Orchestrator, arrival: antiphon_runtime::Arrival) -> InteractionId {
    accepted(orchestrator.admit(arrival).await.expect("a receipt")).0
}

/// The answer to a request, when there is one.
async fn reply(orchestrator: &Orchestrator, id: InteractionId) -> Replied {
    let mut follower = orchestrator.follow(None, antiphon_core::Position(0));
    let found = async {
        loop {
            let event = follower.next().await.expect("an event");
            if let EventBody::Replied(replied) = event.body
                && replied.in_reply_to == id
            {
                return replied;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("it is answered")
}

fn reported(state: &TaskState) -> Value {
    serde_json::from_str(&results(state)[0].0).expect("JSON")
}

#[tokio::test]
async fn what_arrives_is_read_there_and_answered_here() {
    let team = team("");
    let orchestrator = team.orchestrator();
    admit(&orchestrator, message("ada", "hello")).await;
    let id = admit(&orchestrator, request("ada", "count", json!(3))).await;
    let replied = reply(&orchestrator, id).await;
    let requested = format!("[REQUEST {id} from user: count] 3");
    assert_eq!(replied.result, json!(format!("Heard: {requested}")));
    let state = at_rest(&orchestrator, "ada").await;
    let expected = [
        "user: hello".to_owned(),
        "model: Heard: hello".to_owned(),
        format!("user: {requested}"),
        format!("model: Heard: {requested}"),
    ];
    assert_eq!(said(&state), expected);
    assert_eq!(state.created.runner, Some(RunnerConfig::new("elsewhere")));
    assert_eq!((state.queue.len(), state.inbound_requests.len()), (0, 0));
}

#[tokio::test]
async fn one_that_works_elsewhere_asks_and_is_asked() {
    for wait in [true, false] {
        let ask = format!(r#"{{"to":"bob","intent":"count","wait":{wait}}}"#);
        let ada =
            "system_contains = \"I am ada\", last_user_contains = \"go\", results_since_user = 0";
        let bob = "system_contains = \"I am bob\", last_user_contains = \"count\", results_since_user = 0";
        // Late enough for her to be at rest when she does not wait for it.
        let back = step("send_request", r#"{"to":"ada","intent":"why","wait":false}"#);
        let back = format!("{{ delay_ms = 600 }}, {back}");
        let team = team(&(replying(ada, &step("send_request", &ask)) + &replying(bob, &back)));
        let orchestrator = team.orchestrator();
        orchestrator
            .start_agent(&name("bob"), &antiphon_core::Provenance::Owner)
            .await
            .expect("started");
        admit(&orchestrator, message("ada", "go")).await;
        let mut replies = Vec::new();
        let mut follower = orchestrator.follow(None, antiphon_core::Position(0));
        let both = async {
            while replies.len() < 2 {
                let event = follower.next().await.expect("an event");
                if let EventBody::Replied(replied) = event.body {
                    replies.push(replied.status);
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), both).await.expect("both are answered");
        assert_eq!(replies, [ResponseStatus::Completed; 2], "{wait}");
        let state = at_rest(&orchestrator, "ada").await;
        at_rest(&orchestrator, "bob").await;
        assert_eq!((state.outbound_requests.len(), state.inbound_requests.len()), (0, 0), "{wait}");
        let answered = if wait { "completed" } else { "sent" };
        assert_eq!(reported(&state)["status"], answered, "{wait}");
        orchestrator.shutdown(Duration::from_secs(5)).await;
    }
}

/// Its end is written there, and says why; the answer that it owes is written here, before it.
#[tokio::test]
async fn an_agent_that_fails_on_a_runner_leaves_no_request_unanswered() {
    let no = "{ error = { kind = \"permission\", message = \"no\" } }";
    let team = team(&replying("last_user_contains = \"bad\"", no));
    let orchestrator = team.orchestrator();
    let id = admit(&orchestrator, keyed(request("ada", "bad", json!(1)), "1")).await;
    let replied = reply(&orchestrator, id).await;
    assert_eq!(replied.result, json!({"code": "failed", "error": "the agent has failed"}));
    let task = orchestrator.agent_task(&name("ada")).await.expect("a list").expect("a task");
    let state = orchestrator.wait(&task.task_id).await.expect("an end");
    assert_eq!(state.status, TaskStatus::Failed);
    assert_eq!(state.detail.expect("a reason")["code"], "permission");
    assert_eq!(team.events(&task.task_id).await.iter().filter(|b| b.ends_task()).count(), 1);
    let again = orchestrator.admit(keyed(request("ada", "bad", json!(1)), "1")).await;
    assert!(matches!(again, Ok(Receipt::Deduplicated { .. })), "{again:?}");
}

#[tokio::test]
async fn a_peer_that_waits_for_one_that_fails_elsewhere_hears_it() {
    let no = "{ error = { kind = \"permission\", message = \"no\" } }";
    let ask = step("send_request", r#"{"to":"ada","intent":"bad","timeout_s":600}"#);
    let bob = "system_contains = \"I am bob\", results_since_user = 0";
    let team = team(&(replying(bob, &ask) + &replying("last_user_contains = \"bad\"", no)));
    let orchestrator = team.orchestrator();
    orchestrator
        .start_agent(&name("ada"), &antiphon_core::Provenance::Owner)
        .await
        .expect("started");
    admit(&orchestrator, message("bob", "go")).await;
    let rests = tokio::time::timeout(Duration::from_secs(20), at_rest(&orchestrator, "bob")).await;
    let reported = reported(&rests.expect("it is answered"));
    assert_eq!(
        (&reported["status"], &reported["result"]["code"]),
        (&json!("failed"), &json!("failed"))
    );
}

#[tokio::test]
async fn one_that_is_stopped_elsewhere_answers_what_it_read_and_what_it_did_not() {
    let stalls = format!("{}, {{ stall = true }}", says("Hm"));
    let team = team(&replying("last_user_contains = \"stall\"", &stalls));
    let orchestrator = team.orchestrator();
    let mut follower = orchestrator.follow(None, antiphon_core::Position(0));
    let read = admit(&orchestrator, request("ada", "stall", json!(1))).await;
    loop {
        let event = follower.next().await.expect("an event");
        if matches!(&event.body, EventBody::MessageAppended(said) if said.queued == Some(read)) {
            break;
        }
    }
    let unread = admit(&orchestrator, request("ada", "more", json!(1))).await;
    orchestrator.stop_agent(&name("ada"), None).await.expect("stopped");
    for id in [read, unread] {
        let replied = orchestrator.reply(id).await.expect("a journal").expect("an answer");
        assert_eq!(replied.result["code"], "stopped");
    }
    let task = orchestrator.agent_task(&name("ada")).await.expect("a list").expect("a task");
    assert_eq!(task.status, TaskStatus::Canceled);
    let events = team.events(&task.task_id).await;
    let requests = events.iter().filter(|body| {
        matches!(body, EventBody::MessageQueued(queued)
            if matches!(queued.content, InteractionContent::Request { .. }))
    });
    let replies = events.iter().filter(|body| matches!(body, EventBody::Replied(_)));
    assert_eq!(requests.count(), replies.count());
}
