//! Many at once: nothing is lost, no caller waits forever, and every limit holds.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks};
use antiphon_core::port::{
    Append, Appended, IdempotencyKey, Journal, JournalError, Page, Read, TaskQuery,
};
use antiphon_core::{EventBody, InteractionId, Replied, TaskSummary};
use antiphon_runtime::{Arrival, INBOX_OF_SENDER_MAX, Receipt, Rejection};
use async_trait::async_trait;
use serde_json::json;
use tokio::task::JoinSet;

use crate::live_agents::{LiveAgents, at_rest, keyed, message, name, peer, request, said};
use crate::team::{otherwise, replying, says};

/// Answers at once, but stalls when the message asks for it.
fn quick() -> String {
    let stalls = format!("{}, {{ stall = true }}", says("Hm"));
    format!("name = \"live_agents\"\n{}", replying("last_user_contains = \"stall\"", &stalls))
        + &otherwise(&says("ok"))
}

/// Every interaction was taken once, and each sender's in the order of their arrival.
async fn check_taken(live_agents: &LiveAgents) {
    let mut waiting = Vec::new();
    let mut taken: HashMap<InteractionId, usize> = HashMap::new();
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for event in live_agents.events().await {
        if let EventBody::MessageQueued(queued) = event.body {
            waiting.push(queued.id);
        } else if let EventBody::MessageAppended(appended) = event.body
            && let Some(id) = appended.queued
        {
            *taken.entry(id).or_default() += 1;
            let text = format!("{:?}", appended.message);
            let Some((_, behind)) = text.split_once("[MESSAGE from ") else { continue };
            let (from, behind) = behind.split_once("] ").expect("a label");
            let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
            let number = digits.parse().expect("a number");
            numbers.entry(from.to_owned()).or_default().push(number);
        }
    }
    assert!(waiting.iter().all(|id| taken.get(id) == Some(&1)), "each once");
    assert_eq!(taken.len(), waiting.len());
    for (from, numbers) in numbers {
        assert!(numbers.is_sorted(), "{from}: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_at_once_are_all_read_once_in_the_order_of_their_senders() {
    let mut live_agents = LiveAgents::of(&["ada"], quick());
    live_agents.orchestrator = live_agents.on(Arc::new(Slow::new(&live_agents.team.journal)));
    let live_agents = Arc::new(live_agents);
    live_agents.start("ada").await;
    let mut senders = JoinSet::new();
    for sender in 0..20 {
        let live_agents = Arc::clone(&live_agents);
        senders.spawn(async move {
            for n in 0..50 {
                let from = peer(&format!("peer-{sender}"));
                live_agents.admit(Arrival { from, ..message("ada", &n.to_string()) }).await;
            }
        });
    }
    while let Some(sent) = senders.join_next().await {
        sent.expect("all were accepted");
    }
    let state = tokio::time::timeout(Duration::from_secs(60), live_agents.at_rest("ada")).await;
    let state = state.expect("it gets there");
    assert_eq!(said(&state).iter().filter(|line| line.starts_with("user")).count(), 1000);
    check_taken(&live_agents).await;
    // All of it has left the inbox: there is room for as much as before.
    fill(&live_agents, "peer-0").await;
}

/// Fills the inbox with what one sender may have in it, from many sides at once.
async fn fill(live_agents: &Arc<LiveAgents>, from: &str) {
    let mut deltas = live_agents.orchestrator.deltas();
    live_agents.admit(message("ada", "stall")).await;
    deltas.recv().await.expect("a delta");
    live_agents.until(|event| format!("{:?}", event.body).contains("stall")).await;
    let mut sending = JoinSet::new();
    for n in 0..INBOX_OF_SENDER_MAX + 100 {
        let (live_agents, from) = (Arc::clone(live_agents), peer(from));
        let arrival = Arrival { from, ..message("ada", &n.to_string()) };
        sending.spawn(
            async move { live_agents.orchestrator.admit(arrival).await.expect("a receipt") },
        );
    }
    let (mut accepted, mut full) = (0, 0);
    while let Some(receipt) = sending.join_next().await {
        match receipt.expect("no panic") {
            Receipt::Accepted { .. } => accepted += 1,
            Receipt::Rejected(Rejection::SenderFull { .. }) => full += 1,
            Receipt::Deduplicated { .. } | Receipt::Filtered | Receipt::Rejected(_) => {}
        }
    }
    assert_eq!((accepted, full), (INBOX_OF_SENDER_MAX, 100));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bound_is_exact_however_many_come_at_once() {
    let live_agents = Arc::new(LiveAgents::of(&["ada"], quick()));
    fill(&live_agents, "bob").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_key_from_many_sides_is_accepted_once() {
    let live_agents = Arc::new(LiveAgents::of(&["ada"], quick()));
    let mut sending = JoinSet::new();
    for _ in 0..50 {
        let live_agents = Arc::clone(&live_agents);
        let arrival = keyed(request("ada", "count", json!(1)), "k");
        sending.spawn(
            async move { live_agents.orchestrator.admit(arrival).await.expect("a receipt") },
        );
    }
    let mut accepted = Vec::new();
    let mut again = Vec::new();
    while let Some(receipt) = sending.join_next().await {
        match receipt.expect("no panic") {
            Receipt::Accepted { id, task_id } => accepted.push((id, task_id)),
            Receipt::Deduplicated { id, task_id } => again.push((id, task_id)),
            Receipt::Filtered | Receipt::Rejected(_) => {}
        }
    }
    assert_eq!((accepted.len(), again.len()), (1, 49));
    assert!(again.iter().all(|other| *other == accepted[0]));
    live_agents.at_rest("ada").await;
    assert_eq!(live_agents.team.tasks().await.len(), 1, "it was started once");
    check_taken(&live_agents).await;
}

/// A slow journal: its caller may be gone before it answers, and an interaction may be read before
/// its sender gets the receipt.
struct Slow {
    inner: Arc<dyn Journal>,
    late: Duration,
}

impl Slow {
    fn new(inner: &Arc<dyn Journal>) -> DelegatingJournal<Self> {
        DelegatingJournal(Self { inner: Arc::clone(inner), late: Duration::ZERO })
    }
}

#[async_trait]
impl JournalHooks for Slow {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        tokio::task::yield_now().await;
        let arrives = append.events.iter().all(EventBody::is_arrival);
        let appended = self.inner().append(append).await;
        tokio::task::yield_now().await;
        if arrives && !self.late.is_zero() {
            tokio::time::sleep(self.late).await;
        }
        appended
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        tokio::task::yield_now().await;
        self.inner().read(read).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<TaskSummary>, JournalError> {
        tokio::task::yield_now().await;
        self.inner().tasks(query).await
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        tokio::task::yield_now().await;
        self.inner().reply(request).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        tokio::task::yield_now().await;
        self.inner().answered(key).await
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_before_its_sender_hears_of_it_does_not_count_any_more() {
    let busy = format!("{{ delay_ms = 500 }}, {}", says("ok"));
    let text =
        quick().replacen('\n', &format!("\n{}", replying("last_user_contains = \"go\"", &busy)), 1);
    let mut live_agents = LiveAgents::of(&["ada"], text);
    let late = Duration::from_secs(1);
    let inner = Arc::clone(&live_agents.team.journal);
    live_agents.orchestrator = live_agents.on(Arc::new(DelegatingJournal(Slow { inner, late })));
    let live_agents = Arc::new(live_agents);
    for n in 0..3 {
        live_agents.admit(message("ada", "go")).await;
        let arrival = Arrival { from: peer("bob"), ..message("ada", &n.to_string()) };
        let (id, task_id) = live_agents.admit(arrival).await;
        let events = live_agents.team.events(&task_id).await;
        let read = |body: &EventBody| matches!(body, EventBody::MessageAppended(said) if said.queued == Some(id));
        assert!(events.iter().any(read), "it was read meanwhile");
    }
    live_agents.at_rest("ada").await;
    fill(&live_agents, "bob").await;
}

/// Polls something so often, and lets go of it. Says whether it was done by then.
async fn abandon<T>(polls: usize, work: impl Future<Output = T>) -> bool {
    let mut work = std::pin::pin!(work);
    for _ in 0..polls {
        let once = std::future::poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx)));
        if once.await.is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_anywhere_and_asks_again_is_served_once() {
    let (mut cut_off, mut done) = (0, 0);
    for polls in 0..60 {
        let live_agents = LiveAgents::of(&["ada"], quick());
        let orchestrator = live_agents.on(Arc::new(Slow::new(&live_agents.team.journal)));
        let asks = || orchestrator.admit(keyed(request("ada", "count", json!(1)), "k"));
        let whole = abandon(polls, asks()).await;
        let receipt = asks().await.expect("a receipt");
        let (Receipt::Accepted { id, .. } | Receipt::Deduplicated { id, .. }) = receipt else {
            panic!("{polls}: {receipt:?}")
        };
        at_rest(&orchestrator, "ada").await;
        let key = || Some(IdempotencyKey("stop".to_owned()));
        let ada = name("ada");
        let stops = || orchestrator.stop_agent(&ada, key());
        let stopped = abandon(polls, stops()).await;
        stops().await.expect("stopped");
        check_taken(&live_agents).await;
        let replies = live_agents.events().await.into_iter();
        let replies = replies.filter(|e| crate::live_agents::replies(&e.body) == Some(id)).count();
        assert_eq!((replies, live_agents.team.tasks().await.len()), (1, 1), "{polls}");
        cut_off += usize::from(!whole) + usize::from(!stopped);
        done += usize::from(whole) + usize::from(stopped);
    }
    assert!(cut_off > 10 && done > 10, "{cut_off} were cut off, {done} were not");
}

/// An agent waits for one that is stopped by a caller that does not wait for its end.
#[tokio::test(start_paused = true)]
async fn a_requester_learns_at_once_that_the_agent_was_stopped() {
    for polls in 0..40 {
        let ask = r#"{"to":"bob","intent":"hold","timeout_s":600}"#;
        let text = crate::team::script(&[("I am ada", 0, &crate::team::step("send_request", ask))])
            + &otherwise(&says("ok"));
        let live_agents = LiveAgents::of(&["ada", "bob"], text);
        let orchestrator = live_agents.on(Arc::new(Slow::new(&live_agents.team.journal)));
        let bob = orchestrator
            .start_agent(&name("bob"), &antiphon_core::Provenance::Owner)
            .await
            .expect("started")
            .task_id;
        orchestrator.pause(&bob).await.expect("paused");
        orchestrator.admit(message("ada", "go")).await.expect("accepted");
        let requested = |event: &antiphon_core::Event| {
            event.task_id == bob && matches!(event.body, EventBody::MessageQueued(_))
        };
        let mut follower = orchestrator.follow(None, antiphon_core::Position(0));
        while !requested(&follower.next().await.expect("an event")) {}
        let began = tokio::time::Instant::now();
        abandon(polls, orchestrator.stop_agent(&name("bob"), None)).await;
        let state = at_rest(&orchestrator, "ada").await;
        let ended = orchestrator.task(&bob).await.expect("a task").status.is_terminal();
        assert!(state.outbound_requests.is_empty(), "{polls}");
        assert!(
            !ended || began.elapsed() < Duration::from_secs(60),
            "{polls}: {:?}",
            began.elapsed()
        );
    }
}
