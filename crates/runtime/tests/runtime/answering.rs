//! Answers: the first counts, `accepted` is a promise, and a journal that fails now and then loses
//! none of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks};
use antiphon_core::port::{Append, Appended, Journal, JournalError};
use antiphon_core::{Event, EventBody, InteractionContent, InteractionId, ResponseStatus};
use antiphon_runtime::{Arrival, Orchestrator, RuntimeDeps};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::live_agents::{LiveAgents, at_rest, keyed, message, name, request, said};
use crate::team::{Numbered, otherwise, replying, results, says, step};

/// The id of an interface's request with the key `1` to Bob: always the same.
async fn id_of_request() -> InteractionId {
    let live_agents = LiveAgents::of(&["bob"], format!("name = \"x\"\n{}", otherwise(&says("x"))));
    live_agents.admit(keyed(request("bob", "count", json!(3)), "1")).await.0
}

fn responds(id: InteractionId, status: &str, result: &str) -> String {
    let arguments = format!(r#"{{"request_id":"{id}","status":"{status}","result":{result}}}"#);
    step("send_response", &arguments)
}

/// Every answer to a request, in order.
async fn replies(live_agents: &LiveAgents, id: InteractionId) -> Vec<(ResponseStatus, Value)> {
    let events = live_agents.events().await.into_iter();
    let reply = |event: Event| {
        let EventBody::Replied(replied) = event.body else { return None };
        (replied.in_reply_to == id).then_some((replied.status, replied.result))
    };
    events.filter_map(reply).collect()
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_once() {
    let id = id_of_request().await;
    let first = responds(id, "completed", r#"{"n":3}"#);
    let text = crate::team::script(&[
        ("I am bob", 0, &first),
        ("I am bob", 1, &first),
        ("I am bob", 2, &responds(id, "failed", "4")),
        ("I am bob", 3, &step("reply", r#"{"text":"five"}"#)),
        ("I am bob", 4, &responds(InteractionId::from(uuid::Uuid::nil()), "completed", "6")),
        ("I am bob", 5, &says("seven")),
    ]);
    let live_agents = LiveAgents::of(&["bob"], text);
    live_agents.admit(keyed(request("bob", "count", json!(3)), "1")).await;
    let state = live_agents.at_rest("bob").await;
    assert_eq!(replies(&live_agents, id).await, [(ResponseStatus::Completed, json!({"n": 3}))]);
    let failed: Vec<bool> = results(&state).into_iter().map(|(_, failed)| failed).collect();
    assert_eq!(failed, [false, false, true, true, true], "{:?}", results(&state));
    let why = &results(&state)[2].0;
    let gone = format!("there is no open request {id}: it was answered, or never arrived");
    assert!(why.contains(&gone), "{why}");
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_answered_later_and_not_by_the_last_word() {
    let id = id_of_request().await;
    let bob = |when: &str, steps: &str| {
        replying(&format!("system_contains = \"I am bob\", {when}"), steps)
    };
    let text = "name = \"live_agents\"\n".to_owned()
        + &bob(
            "last_user_contains = \"count\", results_since_user = 0",
            &responds(id, "accepted", "null"),
        )
        + &bob(
            "last_user_contains = \"finish\", results_since_user = 0",
            &responds(id, "completed", "3"),
        )
        + &otherwise(&says("on it"));
    let live_agents = LiveAgents::of(&["bob"], text);
    live_agents.admit(keyed(request("bob", "count", json!(3)), "1")).await;
    let state = live_agents.at_rest("bob").await;
    assert_eq!(replies(&live_agents, id).await, [(ResponseStatus::Accepted, Value::Null)]);
    assert_eq!(live_agents.orchestrator.reply(id).await, Ok(None));
    assert_eq!(state.inbound_requests.keys().collect::<Vec<_>>(), [&id]);
    live_agents.admit(message("bob", "something else")).await;
    assert_eq!(
        live_agents.at_rest("bob").await.inbound_requests.len(),
        1,
        "that was about something else"
    );
    live_agents.admit(message("bob", "finish")).await;
    assert_eq!(live_agents.at_rest("bob").await.inbound_requests.len(), 0);
    let expected = [(ResponseStatus::Accepted, Value::Null), (ResponseStatus::Completed, json!(3))];
    assert_eq!(replies(&live_agents, id).await, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_accepted_and_forgotten_is_answered_by_the_clock() {
    let id = id_of_request().await;
    let text = crate::team::script(&[
        ("I am bob", 0, &responds(id, "accepted", "null")),
        ("I am bob", 1, &says("on it")),
    ]);
    let live_agents = LiveAgents::of(&["bob"], text);
    let until = Some(live_agents.clock.now() + chrono::TimeDelta::seconds(90));
    let requested = Arrival { until, ..request("bob", "count", json!(3)) };
    live_agents.admit(keyed(requested, "1")).await;
    live_agents.reply(id).await;
    let replies = replies(&live_agents, id).await;
    assert_eq!((replies.len(), replies[1].0), (2, ResponseStatus::Failed));
    assert_eq!(replies[1].1["code"], "timed_out");
}

/// A requesting peer reads both, and continues with the second.
#[tokio::test(start_paused = true)]
async fn a_waiting_requester_learns_that_it_was_accepted_and_continues_with_the_answer() {
    let script = |id: &str| {
        let responds = |status: &str| {
            step("send_response", &format!(r#"{{"request_id":"{id}","status":"{status}"}}"#))
        };
        let bob = |when: &str, steps: &str| {
            replying(&format!("system_contains = \"I am bob\", {when}"), steps)
        };
        let ask = step("send_request", r#"{"to":"bob","intent":"count"}"#);
        crate::team::script(&[("I am ada", 0, &ask)])
            + &bob("last_user_contains = \"count\", results_since_user = 0", &responds("accepted"))
            + &bob(
                "last_user_contains = \"finish\", results_since_user = 0",
                &responds("completed"),
            )
            + &otherwise(&says("so"))
    };
    let begin = async |script: String| {
        let mut live_agents = LiveAgents::of(&["ada", "bob"], script);
        let ids = Arc::new(Numbered::default());
        let world =
            RuntimeDeps { ids, clock: Arc::clone(&live_agents.clock), ..live_agents.team.world() };
        live_agents.orchestrator = Orchestrator::new(world);
        let (ada, bob) = (live_agents.start("ada").await, live_agents.start("bob").await);
        live_agents.admit(message("ada", "go")).await;
        let requested = |e: &Event| matches!(&e.body, EventBody::RequestSent(_));
        let EventBody::RequestSent(sent) = live_agents.until(requested).await.body else {
            panic!("sent")
        };
        (live_agents, ada, bob, sent.id)
    };
    let (.., id) = begin(script("00000000-0000-0000-0000-000000000000")).await;
    let (live_agents, ada, bob, same) = begin(script(&id.to_string())).await;
    assert_eq!(same, id);
    let arrives = |e: &Event| {
        e.task_id == ada
            && matches!(&e.body, EventBody::MessageQueued(queued)
                if matches!(queued.content, InteractionContent::Response { .. }))
    };
    live_agents.until(arrives).await;
    let waits = live_agents.orchestrator.task(&ada).await.expect("a task");
    assert_eq!((waits.turns, waits.outbound_requests.len()), (1, 1), "the call waits on");
    live_agents.admit(message("bob", "finish")).await;
    let state = live_agents.at_rest("ada").await;
    let reported: Value = serde_json::from_str(&results(&state)[0].0).expect("JSON");
    assert_eq!(reported["status"], "completed");
    let promised = format!("user: [RESPONSE to {id} from bob: accepted]");
    assert_eq!(said(&state).iter().filter(|line| **line == promised).count(), 1);
    assert_eq!(
        live_agents.orchestrator.task(&bob).await.expect("a task").inbound_requests.len(),
        0
    );
}

/// A journal that is out of reach for its `nth` append.
struct Flaky {
    inner: Arc<dyn Journal>,
    nth: usize,
    appends: AtomicUsize,
}

#[async_trait]
impl JournalHooks for Flaky {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        if self.appends.fetch_add(1, Ordering::SeqCst) == self.nth {
            return Err(JournalError::Unavailable { reason: "a hiccup".to_owned() });
        }
        self.inner().append(append).await
    }
}

/// A short failure of the journal does not delay an answer until its deadline.
#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_once_delays_no_answer() {
    let mut failed = 0;
    for nth in 0..40 {
        for wait in [true, false] {
            let ask = format!(r#"{{"to":"bob","intent":"count","wait":{wait}}}"#);
            let text = crate::team::script(&[("I am ada", 0, &step("send_request", &ask))])
                + &otherwise(&says("Heard: {{last_user}}"));
            let live_agents = LiveAgents::of(&["ada", "bob"], text);
            let inner = Arc::clone(&live_agents.team.journal);
            let journal =
                Arc::new(DelegatingJournal(Flaky { inner, nth, appends: AtomicUsize::new(0) }));
            let orchestrator = live_agents.on(Arc::clone(&journal) as Arc<dyn Journal>);
            for who in ["ada", "bob"] {
                while orchestrator
                    .start_agent(&name(who), &antiphon_core::Provenance::Owner)
                    .await
                    .is_err()
                {}
            }
            while orchestrator.admit(keyed(message("ada", "go"), "1")).await.is_err() {}
            let began = tokio::time::Instant::now();
            let place = format!("append {nth}, wait {wait}");
            loop {
                let state = at_rest(&orchestrator, "ada").await;
                at_rest(&orchestrator, "bob").await;
                if state.outbound_requests.is_empty() && state.turns > 1 {
                    break;
                }
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{place}: {:?}", began.elapsed());
            let state = at_rest(&orchestrator, "ada").await;
            let received = said(&state).join("\n");
            assert!(
                received.contains("completed") && !received.contains("failed"),
                "{place}: {received}"
            );
            failed += usize::from(journal.appends.load(Ordering::SeqCst) > nth);
        }
    }
    assert!(failed > 20, "{failed} of the failures happened");
}

/// A slow model does not delay an answer beyond its deadline.
#[tokio::test(start_paused = true)]
async fn a_deadline_passes_also_while_the_model_thinks_and_its_answer_comes_too_late() {
    let text = format!("name = \"slow\"\ndelay_ms = 600000\n{}", otherwise(&says("three")));
    let live_agents = LiveAgents::of(&["bob"], text);
    let began = live_agents.clock.now();
    let until = Some(began + chrono::TimeDelta::seconds(5));
    let (id, _) = live_agents.admit(Arrival { until, ..request("bob", "count", json!(3)) }).await;
    assert_eq!(live_agents.reply(id).await.result["code"], "timed_out");
    assert!(
        live_agents.clock.now() - began < chrono::TimeDelta::seconds(30),
        "it was told at once"
    );
    let state = live_agents.at_rest("bob").await;
    assert_eq!(said(&state).last().map(String::as_str), Some("model: three"));
    assert_eq!(replies(&live_agents, id).await.len(), 1);
}
