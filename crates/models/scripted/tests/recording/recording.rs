use std::time::Duration;

use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, Provider, ProviderError, RawJson, StopReason, Usage};
use antiphon_scripted::Recorder;
use futures_util::StreamExt;
use tokio::task::JoinSet;

use crate::fixed_provider::{End, FixedProvider, arguments, text};
use crate::world::{Read, RecordingPath, ask, message, read, request, scripted};

/// One of each piece.
pub(crate) fn every_piece() -> Vec<Piece> {
    vec![
        Piece::Alive,
        Piece::Model(ModelRef::parse("a/b").expect("a model")),
        Piece::Usage(Usage { cache_read_tokens: Some(3), ..Usage::default() }),
        Piece::Thinking { block: 0, delta: "hm\n".to_owned() },
        Piece::Signature { block: 0, delta: "c2ln".to_owned() },
        Piece::BlockEnd { block: 0 },
        text(7, "\"é\"\u{2028}"),
        text(7, ""),
        Piece::ToolCall {
            block: 8,
            id: Some("id".to_owned()),
            name: Some("ls".to_owned()),
            arguments: String::new(),
        },
        arguments(8, "{\"a\": 1.0}"),
        Piece::Opaque {
            block: 9,
            kind: "sealed".to_owned(),
            value: RawJson::parse("{ \"n\" : 123456789012345678901234567890.0 }").expect("JSON"),
        },
        Piece::Stop(StopSignal { reason: StopReason::ToolUse, raw: "tools".to_owned() }),
        Piece::Done,
    ]
}

#[tokio::test]
async fn an_exchange_is_a_request_its_pieces_and_an_end_line_by_line() {
    let place = RecordingPath::new();
    let provider = place.recorder(scripted("[[reply]]\nsteps = [{ text = 'hi' }]"));
    ask(&provider, "hey").await;
    let request = r#"{"model":"model","messages":[{"type":"user","content":[{"type":"text","text":"hey"}],"timestamp":"1970-01-01T00:00:00Z"}]}"#;
    let first = format!(r#"{{"exchange":1,"request":{request}}}"#);
    let expected = [
        first.as_str(),
        r#"{"exchange":1,"piece":{"model":"scripted/script"}}"#,
        r#"{"exchange":1,"piece":{"text":{"block":0,"delta":"hi"}}}"#,
        r#"{"exchange":1,"piece":{"block_end":{"block":0}}}"#,
        r#"{"exchange":1,"piece":{"usage":{"input_tokens":1,"output_tokens":1}}}"#,
        r#"{"exchange":1,"piece":{"stop":{"reason":"end_turn","raw":"end_turn"}}}"#,
        r#"{"exchange":1,"end":"done"}"#,
    ];
    assert_eq!(place.lines(), expected);
    assert_eq!(provider.failure(), None);
}

#[tokio::test]
async fn the_recorder_does_not_change_the_answer() {
    let secret = text(9, "sk-ant-api03-0123456789abcdef");
    let pieces: Vec<Piece> = [vec![secret], every_piece()].concat();
    let inner = FixedProvider::pieces(pieces.clone());
    let place = RecordingPath::new();
    assert_eq!(ask(&place.recorder(inner), "a").await, Read { pieces, failure: None });
    let failing = FixedProvider::failing(ProviderError::Cut);
    let place = RecordingPath::new();
    let read = ask(&place.recorder(failing), "a").await;
    assert_eq!(read, Read { pieces: Vec::new(), failure: Some(ProviderError::Cut) });
}

#[tokio::test]
async fn every_piece_is_replayed_unchanged() {
    let place = RecordingPath::new();
    ask(&place.recorder(FixedProvider::pieces(every_piece())), "a").await;
    let expected = Read { pieces: every_piece(), failure: None };
    assert_eq!(ask(&place.replay(), "a").await, expected);
}

#[tokio::test]
async fn each_line_is_written_at_once() {
    let place = RecordingPath::new();
    let provider = place.recorder(FixedProvider::pieces(every_piece()));
    let mut source = provider.open(request("a"));
    assert_eq!(place.lines().len(), 0, "nothing is asked before it is read");
    for count in 2..=every_piece().len() + 1 {
        source.next().await;
        assert_eq!(place.lines().len(), count);
    }
    assert_eq!(place.load().unfinished(), 0);
}

#[tokio::test]
async fn the_end_of_an_exchange_is_recorded() {
    let ends = [
        (FixedProvider::pieces(vec![Piece::Done]), r#"{"exchange":1,"end":"done"}"#),
        (FixedProvider::pieces(Vec::new()), r#"{"exchange":1,"end":"cut"}"#),
        (
            FixedProvider::failing(ProviderError::RateLimited {
                message: "slow".to_owned(),
                retry_after: Some(Duration::new(1, 500)),
            }),
            r#"{"exchange":1,"end":{"failed":{"rate_limited":{"message":"slow","retry_after":{"secs":1,"nanos":500}}}}}"#,
        ),
    ];
    for (inner, end) in ends {
        let place = RecordingPath::new();
        ask(&place.recorder(inner), "a").await;
        assert_eq!(place.lines()[1..], [end]);
    }
    let place = RecordingPath::new();
    let provider = place.recorder(FixedProvider::new(vec![Ok(Piece::Alive)], End::Hangs));
    let mut source = provider.open(request("a"));
    source.next().await;
    drop(source);
    drop(provider.open(request("never read")));
    assert_eq!(place.lines()[2..], [r#"{"exchange":1,"end":"dropped"}"#]);
}

#[tokio::test]
async fn an_exchange_ends_once_however_long_it_is_polled_or_kept() {
    let place = RecordingPath::new();
    let provider = place.recorder(FixedProvider::pieces(vec![Piece::Done]));
    let mut source = provider.open(request("a"));
    while source.next().await.is_some() {}
    drop(source);
    // A message stream drops the source as soon as it is complete.
    message(&provider, request("b")).await;
    let ends: Vec<String> = place.lines().into_iter().filter(|l| l.contains("end")).collect();
    assert_eq!(ends, [r#"{"exchange":1,"end":"done"}"#, r#"{"exchange":2,"end":"done"}"#]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_exchanges_are_distinguished() {
    let place = RecordingPath::new();
    let inner = scripted(
        "chunk_chars = 2\ndelay_ms = 1\n[[reply]]\nsteps = [{ text = 'You said {{last_user}}, I heard {{last_user}}.' }]",
    );
    let provider = place.recorder(inner.clone());
    let mut answers = JoinSet::new();
    for n in 0..60 {
        answers.spawn(read(provider.open(request(&n.to_string()))));
    }
    answers.join_all().await;
    assert_eq!((provider.failure(), place.load().exchanges()), (None, 60));
    let replay = place.replay();
    for n in 0..60 {
        assert_eq!(ask(&replay, &n.to_string()).await, ask(&inner, &n.to_string()).await);
    }
    let mixed = place.lines().windows(2).any(|pair| number(&pair[0]) > number(&pair[1]));
    assert!(mixed, "they did not run at the same time");
}

fn number(line: &str) -> u64 {
    let json: serde_json::Value = serde_json::from_str(line).expect("JSON");
    json["exchange"].as_u64().expect("a number")
}

#[tokio::test]
async fn a_second_recorder_continues_where_the_first_one_stopped() {
    let place = RecordingPath::new();
    let inner = scripted("[[reply]]\nsteps = [{ text = '{{last_user}}' }]");
    ask(&place.recorder(inner.clone()), "one").await;
    ask(&place.recorder(inner.clone()), "two").await;
    let numbers: Vec<u64> = place.lines().iter().map(|line| number(line)).collect();
    assert_eq!(numbers, [[1; 7], [2; 7]].concat());
    for text in ["one", "two"] {
        assert_eq!(ask(&place.replay(), text).await, ask(&inner, text).await);
    }
}

#[tokio::test]
async fn clones_write_to_the_same_recording() {
    let place = RecordingPath::new();
    let provider: Recorder<_> = place.recorder(scripted("[[reply]]\nsteps = []"));
    ask(&provider.clone(), "a").await;
    ask(&provider, "b").await;
    assert_eq!(place.load().exchanges(), 2);
}
