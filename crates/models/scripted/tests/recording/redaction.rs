use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, Provider, ProviderError, RawJson, Request, StopReason};
use futures_util::StreamExt;
use proptest::prelude::*;

use crate::fixed_provider::{End, FixedProvider, arguments, text};
use crate::world::{Read, RecordingPath, ask, read, request, scripted};

/// Keys of every kind, and their replacements.
const KEYS: [(&str, &str); 8] = [
    ("sk-0123456789abcdef", "[redacted]"),
    ("sk-ant-api03-AbC_dEf-0123456789", "[redacted]"),
    ("sk-proj-0123456789abcdef_-_", "[redacted]"),
    ("AIzaSyA0123456789abcdef-_", "[redacted]"),
    ("ghp_0123456789abcdefABCDEF", "[redacted]"),
    ("Bearer eyJhbGciOi.J9~0+1/2==", "Bearer [redacted]"),
    ("bearer 0123456789abcdef", "bearer [redacted]"),
    ("BEARER 0123456789abcdef", "BEARER [redacted]"),
];

/// Texts that only resemble keys.
const PLAIN: [&str; 12] = [
    "sk-learn",
    "task-orchestrator-of-many-agents",
    "disk-0123456789abcdefghij",
    "sk-0123456789abcde",
    "AIza",
    "SK-0123456789ABCDEF0",
    "aiza0123456789abcdef0",
    "the bearer of good news",
    "Bearer token",
    "bearer  two-spaces-and-more",
    "ghp_short",
    "sk- 0123456789abcdef",
];

fn asks(text: &str) -> Request {
    Request { system_prompt: text.to_owned(), ..request(text) }
}

/// The replayed text after it was sent in these deltas.
async fn replayed(deltas: &[&str]) -> String {
    let pieces: Vec<Piece> = deltas.iter().map(|delta| text(0, delta)).collect();
    let place = RecordingPath::new();
    ask(&place.recorder(FixedProvider::pieces([pieces, vec![Piece::Done]].concat())), "a").await;
    let read = ask(&place.replay(), "a").await;
    let mut replayed = String::new();
    for piece in read.pieces {
        if let Piece::Text { delta, .. } = piece {
            replayed.push_str(&delta);
        }
    }
    replayed
}

#[tokio::test]
async fn text_that_looks_like_a_key_is_redacted() {
    for (key, shown) in KEYS {
        for (before, after) in [("", ""), ("key: ", " and"), ("\"", "\","), ("(é", ").")] {
            let (text, expected) =
                (format!("{before}{key}{after}"), format!("{before}{shown}{after}"));
            assert_eq!(replayed(&[&text]).await, expected, "{text}");
        }
    }
}

#[tokio::test]
async fn other_text_is_not_changed() {
    for plain in PLAIN {
        assert_eq!(replayed(&[plain]).await, plain);
        assert_eq!(replayed(&[&format!("a {plain} b")]).await, format!("a {plain} b"));
    }
}

#[tokio::test]
async fn a_key_after_a_json_escape_is_redacted() {
    for escape in ["\\n", "\\t", "\\\"", "\\u000a", "\\u00e9"] {
        let text = format!("{{\"a\":\"b{escape}sk-0123456789abcdef\"}}");
        assert_eq!(replayed(&[&text]).await, format!("{{\"a\":\"b{escape}[redacted]\"}}"));
    }
    assert_eq!(replayed(&["\\xsk-0123456789abcdef"]).await, "\\xsk-0123456789abcdef");
}

#[tokio::test]
async fn a_key_split_into_deltas_is_redacted_wherever_it_is_split() {
    for (key, shown) in KEYS {
        let text = format!("a {key} b");
        for at in 0..=text.len() {
            let (one, two) = text.split_at(at);
            assert_eq!(replayed(&[one, two]).await, format!("a {shown} b"), "{one}|{two}");
        }
        let letters: Vec<&str> = text.split("").collect();
        assert_eq!(replayed(&letters).await, format!("a {shown} b"));
    }
}

#[tokio::test]
async fn no_byte_of_a_key_is_in_the_file_from_any_field() {
    let key = "sk-ant-api03-SECRETSECRETSECRET";
    let json = format!("{{\"key\":\"{key}\"}}");
    let sent = |name: &str| Some(format!("{name} {key}"));
    let pieces = vec![
        Piece::Model(ModelRef::parse(&format!("a/{key}")).expect("a model")),
        text(0, key),
        Piece::Thinking { block: 1, delta: key.to_owned() },
        Piece::Signature { block: 1, delta: key.to_owned() },
        Piece::ToolCall { block: 2, id: sent("id"), name: sent("name"), arguments: json.clone() },
        arguments(2, key),
        Piece::Opaque {
            block: 3,
            kind: key.to_owned(),
            value: RawJson::parse(&json).expect("JSON"),
        },
        Piece::Stop(StopSignal { reason: StopReason::EndTurn, raw: key.to_owned() }),
    ];
    let failure = ProviderError::Authentication { message: format!("wrong key {key}") };
    let items = pieces.into_iter().map(Ok).chain([Err(failure)]).collect();
    let place = RecordingPath::new();
    read(
        place
            .recorder(FixedProvider::new(items, End::Ends))
            .open(asks(&format!("my key is {key}"))),
    )
    .await;
    let content = place.content();
    assert!(!content.contains("SECRET"), "{content}");
    assert_eq!(content.matches("[redacted]").count(), 14);
    let replayed = read(place.replay().open(asks(&format!("my key is {key}")))).await;
    let message = "wrong key [redacted]".to_owned();
    assert_eq!(replayed.failure, Some(ProviderError::Authentication { message }));
}

#[tokio::test]
async fn an_answer_interrupted_inside_of_a_key_shows_no_more_than_necessary() {
    // Too short to be a key, then long enough.
    let cases = [
        (vec![text(0, "sk-ant-0123")], vec![text(0, "sk-ant-0123")]),
        (
            vec![text(0, "a sk-ant-0123"), text(0, "456789"), text(0, "abcdef")],
            vec![text(0, "a [redacted]"), text(0, ""), text(0, "")],
        ),
    ];
    for (sent, written) in cases {
        let place = RecordingPath::new();
        ask(&place.recorder(FixedProvider::pieces(sent)), "a").await;
        let expected = Read { pieces: written, failure: None };
        assert_eq!(ask(&place.replay(), "a").await, expected);
    }
}

#[tokio::test]
async fn pieces_wait_in_order_until_they_certainly_contain_no_key() {
    let place = RecordingPath::new();
    let sent = [text(0, "a s"), Piece::Alive, arguments(1, "B"), text(0, "k"), arguments(1, "!")];
    let provider = place.recorder(FixedProvider::pieces(sent.to_vec()));
    let mut source = provider.open(request("a"));
    // The request, and the number of pieces written after each one.
    for written in [0, 0, 0, 0, 0] {
        source.next().await;
        assert_eq!(place.lines().len(), 1 + written);
    }
    source.next().await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: sent.to_vec(), failure: None });
}

#[tokio::test]
async fn the_end_of_a_block_ends_a_possible_key() {
    let place = RecordingPath::new();
    let sent = [text(0, "sk-0123"), Piece::BlockEnd { block: 0 }, text(1, "456789abcdef0123")];
    let provider = place.recorder(FixedProvider::pieces(sent.to_vec()));
    let mut source = provider.open(request("a"));
    for written in [0, 2, 3] {
        source.next().await;
        assert_eq!(place.lines().len(), 1 + written);
    }
    source.next().await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: sent.to_vec(), failure: None });
}

#[tokio::test]
async fn no_more_than_a_thousand_pieces_wait() {
    let place = RecordingPath::new();
    let others = vec![text(1, "a"); 2000];
    let sent = [vec![text(0, "s")], others, vec![text(0, "k")]].concat();
    let provider = place.recorder(FixedProvider::pieces(sent.clone()));
    let mut source = provider.open(request("a"));
    for _ in 0..1025 {
        source.next().await;
    }
    assert_eq!(place.lines().len(), 1 + 1025);
    read(source).await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: sent, failure: None });
}

#[tokio::test]
async fn blocks_are_scanned_separately() {
    let sent = vec![
        text(0, "b"),
        arguments(1, "sk-"),
        text(0, "ear"),
        arguments(1, "0123456789abcdef"),
        Piece::BlockEnd { block: 0 },
        arguments(1, "\""),
        Piece::Done,
    ];
    let place = RecordingPath::new();
    ask(&place.recorder(FixedProvider::pieces(sent.clone())), "a").await;
    let mut expected = sent;
    expected[1] = arguments(1, "[redacted]");
    expected[3] = arguments(1, "");
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: expected, failure: None });
}

#[tokio::test]
async fn a_request_with_a_key_matches_with_that_key_or_another() {
    let place = RecordingPath::new();
    let inner = scripted("[[reply]]\nsteps = [{ text = 'thanks' }]");
    read(place.recorder(inner).open(asks("take ghp_0123456789abcdef01"))).await;
    let replay = place.replay();
    assert_eq!(read(replay.open(asks("take ghp_fedcba987654321001"))).await.failure, None);
}

proptest! {
    #[test]
    fn splitting_makes_no_difference(
        words in prop::collection::vec(prop::sample::select(vec![
            "sk-", "s", "k", "-", "AIza", "A", "ghp_", "g", "Bearer ", "bear", "B", " ", "\\n",
            "\\u00e9", "0123456789", "abcdef", "é", "\"", "ta", ".", "_",
        ]), 0..20),
        cuts in prop::collection::vec(any::<usize>(), 0..10),
    ) {
        let text = words.concat();
        let mut cuts: Vec<usize> =
            cuts.iter().map(|cut| text.ceil_char_boundary(cut % (text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let deltas: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (cut, whole) = runtime.block_on(async { (replayed(&deltas).await, replayed(&[&text]).await) });
        prop_assert_eq!(&cut, &whole);
        // Redacting twice changes nothing.
        prop_assert_eq!(runtime.block_on(replayed(&[&whole])), whole);
    }
}
