//! All layers together against a server with random faults.
//!
//! With any fault on the wire, a call ends with the intended message or with an error that names
//! the cause. No connection and no task is left. The seed is printed; `ANTIPHON_CHAOS_SEED` repeats
//! the same faults.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod answer;
mod random;
mod server_fault;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_anthropic::{Anthropic, AnthropicConfig};
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, MessageStream, ModelRef, Provider, ProviderError,
    RawJson, Request, StopReason, StreamError, Tool, Usage, UserMessage,
};
use antiphon_layers::{
    Breaker, BreakerConfig, Concurrency, Fallback, FallbackModel, RateLimit, Retry, RetryConfig,
    TextCalls, Timeouts, TimeoutsConfig,
};
use antiphon_model_server::{ModelServer, RecordedRequest};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use random::Random;
use server_fault::ServerFault;

const CALLS: usize = 400;
const CALLERS: usize = 32;
/// Concurrent answers of each of the two models.
const SLOTS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// The faults of each call, in order.
type ServerFaults = Arc<Mutex<HashMap<usize, Vec<ServerFault>>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_correctly_and_nothing_is_left() {
    let given = std::env::var("ANTIPHON_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("ANTIPHON_CHAOS_SEED={seed}");
    let faults = ServerFaults::default();
    let server = serve(seed, Arc::clone(&faults)).await;
    let tasks_before = Handle::current().metrics().num_alive_tasks();

    let provider: Arc<dyn Provider> = Arc::new(stack(&server));
    let outcomes = timeout(Duration::from_secs(50), call_all(seed, &provider)).await;
    let outcomes = outcomes.expect("no call hangs");

    let faults = faults.lock().expect("not poisoned").clone();
    let mut counts = HashMap::new();
    for (n, outcome) in outcomes {
        let kind = check_outcome(seed, n, outcome, faults.get(&n).map_or(&[], Vec::as_slice));
        *counts.entry(kind).or_insert(0) += 1;
    }
    println!("{counts:?}, {} requests", server.served());
    assert_eq!(counts.values().sum::<usize>(), CALLS);
    assert!(counts["whole"] > CALLS / 10, "too few got through: {counts:?}");

    let stalls =
        faults.values().flatten().filter(|fault| matches!(fault, ServerFault::Stalled { .. }));
    println!("{} stalls, {} connections left", stalls.count(), server.open_connections());
    settle("idle connections", || server.open_connections() <= 2 * SLOTS.get()).await;
    drop(provider);
    settle("no connections", || server.open_connections() == 0).await;
    settle("no tasks", || Handle::current().metrics().num_alive_tasks() <= tasks_before).await;
}

async fn serve(seed: u64, faults: ServerFaults) -> ModelServer {
    let answer = move |request: &RecordedRequest, _| {
        let body = request.json();
        let text = body["messages"][0]["content"][0]["text"].as_str().expect("a text");
        let n: usize = text.strip_prefix("call ").and_then(|n| n.parse().ok()).expect("a number");
        let mut faults = faults.lock().expect("not poisoned");
        let faults = faults.entry(n).or_default();
        let fault = ServerFault::draw(&mut Random::new(seed, [n, faults.len()]), n);
        faults.push(fault);
        fault.reply(n)
    };
    ModelServer::start_forgetful(answer).await.expect("a server")
}

/// All layers in the documented order, with short times.
fn stack(server: &ModelServer) -> Fallback {
    let transport = Transport::new(&TransportConfig::default()).expect("a transport");
    let model = |name: &str| {
        let base_url = Endpoint::parse(&server.url()).expect("an address");
        let (name, api_key) = (name.to_owned(), Some("key".into()));
        let config = AnthropicConfig { name, base_url, api_key, cache: None };
        let provider = TextCalls::new(Anthropic::new(config, transport.clone()));
        let silence = Duration::from_millis(1000);
        let timeouts = TimeoutsConfig { first_byte: silence, stall: silence };
        let provider = Timeouts::new(provider, timeouts);
        let provider = RateLimit::per_minute(provider, NonZeroU32::MAX);
        let retry = RetryConfig {
            retries_max: 2,
            pause_min: Duration::from_millis(5),
            pause_max: Duration::from_millis(40),
            asked_pause_max: Duration::from_millis(100),
        };
        let provider = Concurrency::new(Retry::new(provider, retry), SLOTS);
        let failures = NonZeroU32::new(2).expect("a number");
        Breaker::new(provider, BreakerConfig { failures, open_for: Duration::from_millis(5) })
    };
    let choice = |name: &str| FallbackModel {
        model: ModelRef::parse(&format!("{name}/model")).expect("a model"),
        provider: Arc::new(model(name)),
    };
    Fallback::new(choice("main"), [choice("spare")])
}

/// A message and its error.
type Outcome = (AssistantMessage, Option<StreamError>);

async fn call_all(seed: u64, provider: &Arc<dyn Provider>) -> Vec<(usize, Outcome)> {
    let callers = Arc::new(Semaphore::new(CALLERS));
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        let (provider, callers) = (Arc::clone(provider), Arc::clone(&callers));
        calls.spawn(async move {
            let _place = callers.acquire().await.expect("never closed");
            let cancel = match cancel_after(seed, n) {
                Some(patience) => Cancel::when(sleep(patience)),
                None => Cancel::never(),
            };
            (n, call(&*provider, n, cancel).await)
        });
    }
    calls.join_all().await
}

/// After how long the caller of call `n` cancels; most never do.
fn cancel_after(seed: u64, n: usize) -> Option<Duration> {
    let mut random = Random::new(seed, [n, usize::MAX]);
    (random.below(12) == 0).then(|| Duration::from_millis(random.below(40) as u64))
}

async fn call(provider: &dyn Provider, n: usize, cancel: Cancel) -> Outcome {
    let tool = Tool {
        name: answer::TOOL.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
    };
    let request = Request {
        messages: vec![UserMessage::text(format!("call {n}"), AT).into()].into(),
        tools: vec![tool.into()],
        ..Request::default()
    };
    let mut stream = MessageStream::open(provider, request, cancel, AT);
    let failure = loop {
        match stream.next().await {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (stream.message().expect("it was read"), failure)
}

/// Checks how call `n` ended, and returns a name for it.
fn check_outcome(
    seed: u64,
    n: usize,
    (message, failure): Outcome,
    faults: &[ServerFault],
) -> &'static str {
    let Some(failure) = failure else {
        let model = message.model.clone().expect("it was named");
        assert!(["main/model", "spare/model"].contains(&model.to_string().as_str()));
        assert_eq!(message, expected_message(n, model), "call {n}, {faults:?}");
        return "whole";
    };
    // The partial content is a prefix of the intended one, without an incomplete call.
    let whole = answer::content(n);
    assert!(message.content.len() <= whole.len(), "call {n}: {message:?}");
    assert!(answer::words(n).starts_with(&message.text()), "call {n}: {message:?}");
    for call in message.tool_calls() {
        let block = AssistantBlock::ToolCall(call.clone());
        assert!(whole.contains(&block), "call {n}: {message:?}");
    }
    match failure {
        StreamError::Canceled => {
            assert!(cancel_after(seed, n).is_some(), "call {n} was not canceled");
            "canceled"
        }
        StreamError::Provider(ProviderError::Overloaded { retry_after: Some(_), .. }) => "resting",
        StreamError::Provider(error) => {
            let last = faults.last().expect("it was asked");
            assert!(last.explains(&error), "call {n}: {error:?} after {faults:?}");
            "failed"
        }
        StreamError::Closed => unreachable!("call {n} was not closed"),
    }
}

/// The intended message.
fn expected_message(n: usize, model: ModelRef) -> AssistantMessage {
    let calls = n % 4 >= 2;
    let raw = if n % 4 == 2 { "tool_use" } else { "end_turn" };
    AssistantMessage {
        content: answer::content(n),
        stop_reason: if calls { StopReason::ToolUse } else { StopReason::EndTurn },
        raw_stop_reason: raw.to_owned(),
        usage: Usage { input_tokens: n as u64, output_tokens: 9, ..Usage::default() },
        model: Some(model),
        timestamp: AT,
    }
}

/// Waits until the condition holds.
async fn settle(what: &str, is_so: impl Fn() -> bool) {
    let settled = timeout(Duration::from_secs(5), async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(settled.await.is_ok(), "{what}: not within five seconds");
}
