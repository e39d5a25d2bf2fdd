//! The whole stack against a server that does everything a server should not.
//!
//! Whatever happens on the wire, a call ends, and it ends in the message the model meant or in
//! the error that says what went wrong. Nothing is left behind: no connection, no task. The seed
//! is printed; `ANTIPHON_CHAOS_SEED` plays the same faults again.
#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

mod answer;
mod dice;
mod fate;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_anthropic::{Anthropic, Config};
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, MessageStream, ModelRef, Provider, ProviderError,
    RawJson, Request, StopReason, StreamError, Tool, Usage, UserMessage,
};
use antiphon_layers::{
    Breaker, BreakerConfig, Choice, Concurrency, Fallback, RateLimit, Retry, RetryConfig,
    TextCalls, Timeouts, TimeoutsConfig,
};
use antiphon_model_server::{ModelServer, Recorded};
use antiphon_model_transport::{Endpoint, Transport, TransportConfig};
use chrono::{DateTime, Utc};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use dice::Dice;
use fate::Fate;

const CALLS: usize = 400;
const CALLERS: usize = 32;
/// Answers at a time, of each of the two models.
const PLACES: NonZeroUsize = NonZeroUsize::new(8).unwrap();
const AT: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// What the server did with each call, in order.
type Fates = Arc<Mutex<HashMap<usize, Vec<Fate>>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_as_it_should_and_nothing_is_left_behind() {
    let given = std::env::var("ANTIPHON_CHAOS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("ANTIPHON_CHAOS_SEED={seed}");
    let fates = Fates::default();
    let server = serve(seed, Arc::clone(&fates)).await;
    let tasks_before = Handle::current().metrics().num_alive_tasks();

    let provider: Arc<dyn Provider> = Arc::new(stack(&server));
    let outcomes = timeout(Duration::from_secs(50), call_all(seed, &provider)).await;
    let outcomes = outcomes.expect("no call hangs");

    let fates = fates.lock().expect("nobody panicked").clone();
    let mut counts = HashMap::new();
    for (n, outcome) in outcomes {
        let kind = judge(seed, n, outcome, fates.get(&n).map_or(&[], Vec::as_slice));
        *counts.entry(kind).or_insert(0) += 1;
    }
    println!("{counts:?}, {} requests", server.served());
    assert_eq!(counts.values().sum::<usize>(), CALLS);
    assert!(counts["whole"] > CALLS / 10, "too few got through: {counts:?}");

    let stalls = fates.values().flatten().filter(|fate| matches!(fate, Fate::Stalled { .. }));
    println!("{} stalls, {} connections left", stalls.count(), server.open_connections());
    settle("idle connections", || server.open_connections() <= 2 * PLACES.get()).await;
    drop(provider);
    settle("no connections", || server.open_connections() == 0).await;
    settle("no tasks", || Handle::current().metrics().num_alive_tasks() <= tasks_before).await;
}

async fn serve(seed: u64, fates: Fates) -> ModelServer {
    let answer = move |request: &Recorded, _| {
        let body = request.json();
        let text = body["messages"][0]["content"][0]["text"].as_str().expect("a text");
        let n: usize = text.strip_prefix("call ").and_then(|n| n.parse().ok()).expect("a number");
        let mut fates = fates.lock().expect("nobody panicked");
        let fates = fates.entry(n).or_default();
        let fate = Fate::draw(&mut Dice::new(seed, [n, fates.len()]), n);
        fates.push(fate);
        fate.reply(n)
    };
    ModelServer::start_forgetful(answer).await.expect("a server")
}

/// All layers, as the crate says they are stacked, with short times.
fn stack(server: &ModelServer) -> Fallback {
    let transport = Transport::new(&TransportConfig::default()).expect("a transport");
    let model = |name: &str| {
        let base_url = Endpoint::parse(&server.url()).expect("an address");
        let (name, api_key) = (name.to_owned(), Some("key".into()));
        let config = Config { name, base_url, api_key, cache: None };
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
        let provider = Concurrency::new(Retry::new(provider, retry), PLACES);
        let failures = NonZeroU32::new(2).expect("a number");
        Breaker::new(provider, BreakerConfig { failures, rest: Duration::from_millis(5) })
    };
    let choice = |name: &str| Choice {
        model: ModelRef::parse(&format!("{name}/model")).expect("a model"),
        provider: Arc::new(model(name)),
    };
    Fallback::new(choice("main"), [choice("spare")])
}

/// A message and how it ended.
type Outcome = (AssistantMessage, Option<StreamError>);

async fn call_all(seed: u64, provider: &Arc<dyn Provider>) -> Vec<(usize, Outcome)> {
    let callers = Arc::new(Semaphore::new(CALLERS));
    let mut calls = JoinSet::new();
    for n in 0..CALLS {
        let (provider, callers) = (Arc::clone(provider), Arc::clone(&callers));
        calls.spawn(async move {
            let _place = callers.acquire().await.expect("never closed");
            let cancel = match patience(seed, n) {
                Some(patience) => Cancel::when(sleep(patience)),
                None => Cancel::never(),
            };
            (n, call(&*provider, n, cancel).await)
        });
    }
    calls.join_all().await
}

/// How long the caller of call `n` waits before it cancels; most wait for ever.
fn patience(seed: u64, n: usize) -> Option<Duration> {
    let mut dice = Dice::new(seed, [n, usize::MAX]);
    (dice.below(12) == 0).then(|| Duration::from_millis(dice.below(40) as u64))
}

async fn call(provider: &dyn Provider, n: usize, cancel: Cancel) -> Outcome {
    let tool = Tool {
        name: answer::TOOL.to_owned(),
        description: String::new(),
        parameters: RawJson::empty_object(),
    };
    let request = Request {
        messages: vec![UserMessage::text(format!("call {n}"), AT).into()],
        tools: vec![tool],
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

/// Checks how call `n` ended, and gives it a name.
fn judge(seed: u64, n: usize, (message, failure): Outcome, fates: &[Fate]) -> &'static str {
    let Some(failure) = failure else {
        let model = message.model.clone().expect("it was named");
        assert!(["main/model", "spare/model"].contains(&model.to_string().as_str()));
        assert_eq!(message, meant(n, model), "call {n}, {fates:?}");
        return "whole";
    };
    // What there is of it is a beginning of what was meant, without half a call.
    let whole = answer::content(n);
    assert!(message.content.len() <= whole.len(), "call {n}: {message:?}");
    assert!(answer::words(n).starts_with(&message.text()), "call {n}: {message:?}");
    for call in message.tool_calls() {
        let block = AssistantBlock::ToolCall(call.clone());
        assert!(whole.contains(&block), "call {n}: {message:?}");
    }
    match failure {
        StreamError::Canceled => {
            assert!(patience(seed, n).is_some(), "nobody canceled call {n}");
            "canceled"
        }
        StreamError::Provider(ProviderError::Overloaded { retry_after: Some(_), .. }) => "resting",
        StreamError::Provider(error) => {
            let last = fates.last().expect("it was asked");
            assert!(last.explains(&error), "call {n}: {error:?} after {fates:?}");
            "failed"
        }
        StreamError::Closed => unreachable!("nobody closed call {n}"),
    }
}

/// The message the model meant.
fn meant(n: usize, model: ModelRef) -> AssistantMessage {
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

/// Waits until it is so.
async fn settle(what: &str, is_so: impl Fn() -> bool) {
    let settled = timeout(Duration::from_secs(5), async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(settled.await.is_ok(), "{what}: not within five seconds");
}
