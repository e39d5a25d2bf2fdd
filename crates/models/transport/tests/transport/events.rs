//! Server-sent events in all their forms.

use antiphon_core::{Piece, ProviderError};
use antiphon_model_server::{Ending, Part, Reply};
use antiphon_model_transport::EVENT_BYTES_MAX;
use futures_util::StreamExt;
use proptest::prelude::*;

use crate::world::{Echo, all_pieces, answer, echoed, post, server, transport};

/// A name, a body, and the names and data of its events.
type Case = (&'static str, &'static [u8], &'static [(&'static str, &'static str)]);

const CASES: [Case; 14] = [
    ("LF", b"data: a\n\ndata: b\n\n", &[("message", "a"), ("message", "b")]),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", &[("message", "a"), ("message", "b")]),
    ("CR", b"data: a\r\rdata: b\r\r", &[("message", "a"), ("message", "b")]),
    ("all three", b"event: x\r\ndata: a\n\r\ndata: b\r\n\n", &[("x", "a"), ("message", "b")]),
    ("a name", b"event: ping\ndata: a\n\n", &[("ping", "a")]),
    ("a name is for one", b"event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("message", "b")]),
    ("several lines", b"data: a\ndata: b\ndata:\ndata: c\n\n", &[("message", "a\nb\n\nc")]),
    ("one space", b"data:a\n\ndata:  b\n\n", &[("message", "a"), ("message", " b")]),
    ("a byte order mark", b"\xef\xbb\xbfdata: a\n\n", &[("message", "a")]),
    ("comments", b": hi\ndata: a\n: there\n\n:\n\n", &[("message", "a")]),
    ("other fields", b"id: 7\nretry: 10\nx: y\ndata: a\n\n", &[("message", "a")]),
    ("a name without data", b"event: x\n\ndata: a\n\n", &[("message", "a")]),
    ("no blank line at last", b"data: a\n\ndata: b\n", &[("message", "a"), ("message", "b")]),
    ("no end of line at last", b"data: a\n\ndata: b", &[("message", "a"), ("message", "b")]),
];

#[tokio::test]
async fn all_forms_of_the_format_are_parsed() {
    for (name, body, events) in CASES {
        let pieces: Vec<_> = events.iter().map(|(name, data)| Ok(echoed(name, data))).collect();
        for size in [1, 3, 4096] {
            let reply = Reply::events(body).split(size);
            assert_eq!(answer(reply).await, pieces, "{name}, {size} bytes at a time");
        }
    }
}

#[tokio::test]
async fn an_event_without_content_is_a_sign_of_life() {
    let server = server(Reply::events("data: nothing\n\ndata: a\n\n")).await;
    let source = transport().stream(post(&server.url()), Echo);
    assert_eq!(all_pieces(source).await, [Ok(Piece::Alive), Ok(echoed("message", "a"))]);
}

#[tokio::test]
async fn bytes_without_a_complete_event_are_a_sign_of_life() {
    for bytes in [": keepalive\n\n", "data: b", "retry: 1\n"] {
        let parts = ["data: a\n\n", bytes].map(|part| Part::Bytes(part.into()));
        let reply = Reply { parts: parts.into(), ..Reply::events("") }.ending(Ending::Stall);
        let server = server(reply).await;
        let mut source = transport().stream(post(&server.url()), Echo);
        let received = [source.next().await, source.next().await];
        assert_eq!(received, [Some(Ok(echoed("message", "a"))), Some(Ok(Piece::Alive))], "{bytes}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_of_any_events_has_the_same_result(
        events in prop::collection::vec((written_name(), prop::collection::vec(line(), 1..4)), 1..6),
        end in prop::sample::select(vec!["\n", "\r", "\r\n"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let written = |(name, lines): &(String, Vec<String>)| {
            let data: String = lines.iter().flat_map(|line| ["data: ", line, end]).collect();
            format!(": a comment{end}event: {name}{end}{data}{end}")
        };
        let body: String = events.iter().map(written).collect();
        let said_back: Vec<_> =
            events.iter().map(|(name, lines)| Ok(echoed(name, &lines.join("\n")))).collect();
        let reply = Reply { parts: cut(body.as_bytes(), &cuts), ..Reply::events("") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        prop_assert_eq!(runtime.expect("a runtime").block_on(answer(reply)), said_back);
    }
}

fn written_name() -> impl Strategy<Value = String> {
    "[a-zé€]{1,6}"
}

/// A line of data without meaning for the dialect.
fn line() -> impl Strategy<Value = String> {
    "=[a-z :\"{}é€😀]{0,12}"
}

fn cut(body: &[u8], cuts: &[prop::sample::Index]) -> Vec<Part> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len())).collect();
    ends.push(body.len());
    ends.sort_unstable();
    let mut start = 0;
    let mut part = |end| {
        let part = Part::Bytes(body[start..end].to_vec());
        start = end;
        part
    };
    ends.into_iter().map(&mut part).collect()
}

#[tokio::test]
async fn an_event_may_be_as_large_as_the_limit_and_no_larger() {
    let event = |bytes: usize| [b"data: ", vec![b'x'; bytes].as_slice(), b"\n\n"].concat();
    let largest = answer(Reply::events(event(EVENT_BYTES_MAX))).await;
    assert!(
        largest == [Ok(echoed("message", &"x".repeat(EVENT_BYTES_MAX)))],
        "the largest is read"
    );
    let error = ProviderError::Protocol {
        message: format!("an event of more than {EVENT_BYTES_MAX} bytes"),
    };
    assert_eq!(answer(Reply::events(event(EVENT_BYTES_MAX + 1))).await, [Err(error)]);
}

#[tokio::test]
async fn nothing_is_read_after_the_end_of_the_answer() {
    let reply = Reply::events("data: a\n\ndata: done\n\ndata: b\n\n");
    assert_eq!(answer(reply).await, [Ok(echoed("message", "a")), Ok(Piece::Done)]);
}

#[tokio::test]
async fn an_answer_is_complete_without_the_blank_line_after_its_end() {
    let reply = Reply::events("data: a\n\ndata: done");
    assert_eq!(answer(reply).await, [Ok(echoed("message", "a")), Ok(Piece::Done)]);
}

#[tokio::test]
async fn an_answer_is_complete_although_its_body_never_ends() {
    let reply = Reply::events("data: a\n\ndata: done\n\n").ending(Ending::Stall);
    assert_eq!(answer(reply).await, [Ok(echoed("message", "a")), Ok(Piece::Done)]);
}

#[tokio::test]
async fn an_event_that_means_failure_ends_the_answer() {
    let reply = Reply::events("data: a\n\ndata: fault\n\ndata: b\n\n");
    let error = ProviderError::ContextOverflow { message: "fault".to_owned() };
    assert_eq!(answer(reply).await, [Ok(echoed("message", "a")), Err(error)]);
}

#[tokio::test]
async fn an_interruption_is_distinguished_from_an_error() {
    let malformed = ProviderError::Protocol { message: "half".to_owned() };
    let cases = [
        ("between events", "data: a\n\n", Ending::Cut, ProviderError::Cut),
        ("within an event", "data: a\n\ndata: ha", Ending::Cut, ProviderError::Cut),
        (
            "within an event, politely",
            "data: a\n\ndata: half",
            Ending::Complete,
            ProviderError::Cut,
        ),
        ("not at all", "data: a\n\ndata: half\n\n", Ending::Complete, malformed),
    ];
    for (name, body, ending, error) in cases {
        let read = answer(Reply::events(body).ending(ending)).await;
        assert_eq!(read, [Ok(echoed("message", "a")), Err(error)], "{name}");
    }
}
