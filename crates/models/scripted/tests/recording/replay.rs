use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::TimeoutPhase;
use antiphon_core::{
    AssistantMessage, Cancel, InputBlock, Message, MessageStream, Piece, Provider, ProviderError,
    Request, StreamError, ToolResultMessage,
};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::StreamExt;
use tokio::time::Instant;

use crate::fixed_provider::{End, FixedProvider, text};
use crate::world::{AT, Read, RecordingPath, ask, message, read, refusal, request, scripted};

#[tokio::test]
async fn the_same_request_gets_its_answers_in_the_recorded_order() {
    let place = RecordingPath::new();
    let inner = scripted(
        "
        [[reply]]
        when = { attempt = 1 }
        steps = [{ error = { kind = 'overloaded', retry_after_ms = 1500 } }]
        [[reply]]
        when = { attempt = 2 }
        steps = [{ text = 'second' }, { cut = true }]
        [[reply]]
        steps = [{ text = '{{last_user}}' }, { call = { name = 'ls' } }]
        ",
    );
    let provider = place.recorder(inner);
    let mut recorded = Vec::new();
    for text in ["a", "b", "a", "a", "b"] {
        recorded.push((text, message(&provider, request(text)).await));
    }
    let replay = place.replay();
    // Only the order among equal requests matters.
    for (text, answer) in recorded.iter().filter(|(text, _)| *text == "b") {
        assert_eq!(message(&replay, request(text)).await, *answer);
    }
    for (text, answer) in recorded.iter().filter(|(text, _)| *text == "a") {
        assert_eq!(message(&replay.clone(), request(text)).await, *answer);
    }
    assert_eq!(
        refusal(&replay, request("a")).await,
        "this request was recorded 3 times and is made once more"
    );
}

/// A call without an id, and the next step.
async fn two_steps(provider: &impl Provider, at: DateTime<Utc>) -> [AssistantMessage; 2] {
    let ask = async |request: &Request| {
        let stream = MessageStream::open(provider, request.clone(), Cancel::never(), at);
        stream.complete().await.expect("an answer")
    };
    let mut request = request("look");
    let first = ask(&request).await;
    let results = first.tool_calls().map(|call| ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: vec![InputBlock::text("nothing")],
        is_error: false,
        timestamp: at,
    });
    let results: Vec<Arc<Message>> = results.map(Into::into).collect();
    request.messages.push(first.clone().into());
    request.messages.extend(results);
    let second = ask(&request).await;
    [first, second]
}

#[tokio::test]
async fn calls_without_an_id_are_replayed_at_any_time() {
    let place = RecordingPath::new();
    let script = "
        [[reply]]
        when = { turn = 0 }
        steps = [{ call = { name = 'ls', id = '' } }, { call = { name = 'ls', id = '' } }]
        [[reply]]
        steps = [{ text = 'nothing there' }, { call = { name = 'ls', id = '' } }]
        ";
    let recorded = two_steps(&place.recorder(scripted(script)), AT).await;
    let later = AT + TimeDelta::days(1);
    let again = two_steps(&place.replay(), later).await.map(|answer| {
        assert_eq!(answer.timestamp, later);
        AssistantMessage { timestamp: AT, ..answer }
    });
    assert_eq!(again, recorded);
    let ids: HashSet<_> =
        recorded.iter().flat_map(AssistantMessage::tool_calls).map(|call| &call.id).collect();
    assert_eq!(ids.len(), 3, "each has its own");
}

#[tokio::test]
async fn every_error_is_replayed_unchanged() {
    let message = || "m".to_owned();
    let retry_after = Some(Duration::new(3, 141_592_653));
    for error in [
        ProviderError::InvalidRequest { message: message() },
        ProviderError::ContextOverflow { message: message() },
        ProviderError::Authentication { message: message() },
        ProviderError::Permission { message: message() },
        ProviderError::NotFound { message: message() },
        ProviderError::RateLimited { message: message(), retry_after },
        ProviderError::RateLimited { message: message(), retry_after: None },
        ProviderError::Overloaded { message: message(), retry_after: Some(Duration::MAX) },
        ProviderError::Overloaded { message: message(), retry_after: None },
        ProviderError::Server { status: 503, message: message(), retry_after },
        ProviderError::Server { status: 200, message: message(), retry_after: None },
        ProviderError::Connection { message: message() },
        ProviderError::Timeout { phase: TimeoutPhase::Connect },
        ProviderError::Timeout { phase: TimeoutPhase::FirstByte },
        ProviderError::Timeout { phase: TimeoutPhase::Stall },
        ProviderError::Cut,
        ProviderError::Protocol { message: message() },
    ] {
        let place = RecordingPath::new();
        let sent = vec![Ok(text(0, "so")), Err(error.clone())];
        ask(&place.recorder(FixedProvider::new(sent, End::Ends)), "a").await;
        let expected = Read { pieces: vec![text(0, "so")], failure: Some(error) };
        assert_eq!(ask(&place.replay(), "a").await, expected);
    }
}

#[tokio::test]
async fn an_interrupted_answer_is_interrupted_again() {
    let place = RecordingPath::new();
    ask(&place.recorder(FixedProvider::pieces(vec![text(0, "cu")])), "a").await;
    let expected = Read { pieces: vec![text(0, "cu")], failure: None };
    assert_eq!(ask(&place.replay(), "a").await, expected);
    let (_, failure) = message(&place.replay(), request("a")).await;
    assert_eq!(failure, Some(StreamError::Provider(ProviderError::Cut)));
}

#[tokio::test]
async fn a_dropped_answer_ends_where_its_reader_stopped() {
    let place = RecordingPath::new();
    let inner = FixedProvider::new(vec![Ok(Piece::Alive), Ok(text(0, "a"))], End::Hangs);
    let provider = place.recorder(inner);
    let mut source = provider.open(request("a"));
    source.next().await;
    drop(source);
    let expected = Read { pieces: vec![Piece::Alive], failure: None };
    assert_eq!(ask(&place.replay(), "a").await, expected);
}

#[tokio::test]
async fn an_answer_whose_recorder_was_killed_ends_there() {
    let lines = [
        r#"{"exchange":5,"request":"anything"}"#,
        r#"{"exchange":5,"piece":{"text":{"block":0,"delta":"a"}}}"#,
        "",
    ];
    let json = serde_json::to_string(&request("a")).expect("JSON");
    let place = RecordingPath::holding(lines.join("\n").replace("\"anything\"", &json));
    let recording = place.load();
    assert_eq!((recording.exchanges(), recording.unfinished()), (1, 1));
    let expected = Read { pieces: vec![text(0, "a")], failure: None };
    assert_eq!(ask(&place.replay(), "a").await, expected);
}

#[tokio::test(start_paused = true)]
async fn the_duration_of_an_answer_is_not_recorded() {
    let place = RecordingPath::new();
    let inner =
        scripted("delay_ms = 1000\nchunk_chars = 1\n[[reply]]\nsteps = [{ text = 'slow' }]");
    let start = Instant::now();
    let recorded = ask(&place.recorder(inner), "a").await;
    assert_eq!(start.elapsed(), Duration::from_secs(4));
    assert_eq!(ask(&place.replay(), "a").await, recorded);
    assert_eq!(start.elapsed(), Duration::from_secs(4));
}

#[tokio::test]
async fn an_answer_that_is_not_polled_is_not_used_up() {
    let place = RecordingPath::new();
    ask(&place.recorder(scripted("[[reply]]\nsteps = []")), "a").await;
    let replay = place.replay();
    drop(replay.open(request("a")));
    assert_eq!(ask(&replay, "a").await.failure, None);
}

#[tokio::test]
async fn the_request_must_be_the_same_byte_for_byte() {
    let place = RecordingPath::new();
    ask(&place.recorder(scripted("[[reply]]\nsteps = []")), "a").await;
    let replay = place.replay();
    for other in [
        request("A"),
        Request { model: "other".to_owned(), ..request("a") },
        Request { system_prompt: " ".to_owned(), ..request("a") },
        Request { max_tokens: std::num::NonZeroU32::new(1), ..request("a") },
    ] {
        let message = refusal(&replay, other).await;
        assert!(message.starts_with("this request was not recorded"), "{message}");
    }
    assert_eq!(read(replay.open(request("a"))).await.failure, None);
}

#[tokio::test]
async fn a_long_replay_yields_to_other_tasks() {
    let place = RecordingPath::new();
    let pieces = vec![Piece::Alive; 10_000];
    ask(&place.recorder(FixedProvider::pieces(pieces)), "a").await;
    let mut others = tokio::task::JoinSet::new();
    others.spawn(async {});
    let cancel = Cancel::when(async move {
        others.join_next().await;
    });
    let mut stream = MessageStream::open(&place.replay(), request("a"), cancel, AT);
    assert_eq!(stream.next().await, Err(StreamError::Canceled));
}
