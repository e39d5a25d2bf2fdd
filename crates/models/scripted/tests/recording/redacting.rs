use antiphon_core::port::StopSignal;
use antiphon_core::{ModelRef, Piece, Provider, ProviderError, RawJson, Request, StopReason};
use futures_util::StreamExt;
use proptest::prelude::*;

use crate::said::{End, Said, arguments, text};
use crate::world::{Place, Read, ask, read, request, scripted};

/// Keys of every kind, and what is written in their place.
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

/// What is no key, although it looks a little like one.
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

/// The text that is replayed after it was said in these deltas.
async fn replayed(deltas: &[&str]) -> String {
    let pieces: Vec<Piece> = deltas.iter().map(|delta| text(0, delta)).collect();
    let place = Place::new();
    ask(&place.recorder(Said::pieces([pieces, vec![Piece::Done]].concat())), "a").await;
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
async fn what_looks_like_a_key_is_taken_out() {
    for (key, shown) in KEYS {
        for (before, after) in [("", ""), ("key: ", " and"), ("\"", "\","), ("(é", ").")] {
            let (text, expected) =
                (format!("{before}{key}{after}"), format!("{before}{shown}{after}"));
            assert_eq!(replayed(&[&text]).await, expected, "{text}");
        }
    }
}

#[tokio::test]
async fn what_does_not_is_left_alone() {
    for plain in PLAIN {
        assert_eq!(replayed(&[plain]).await, plain);
        assert_eq!(replayed(&[&format!("a {plain} b")]).await, format!("a {plain} b"));
    }
}

#[tokio::test]
async fn a_key_behind_an_escape_of_json_is_found() {
    for escape in ["\\n", "\\t", "\\\"", "\\u000a", "\\u00e9"] {
        let text = format!("{{\"a\":\"b{escape}sk-0123456789abcdef\"}}");
        assert_eq!(replayed(&[&text]).await, format!("{{\"a\":\"b{escape}[redacted]\"}}"));
    }
    assert_eq!(replayed(&["\\xsk-0123456789abcdef"]).await, "\\xsk-0123456789abcdef");
}

#[tokio::test]
async fn a_key_that_is_cut_into_deltas_is_taken_out_wherever_it_is_cut() {
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
async fn no_byte_of_a_key_is_in_the_file_whatever_said_it() {
    let key = "sk-ant-api03-SECRETSECRETSECRET";
    let json = format!("{{\"key\":\"{key}\"}}");
    let said = |name: &str| Some(format!("{name} {key}"));
    let pieces = vec![
        Piece::Model(ModelRef::parse(&format!("a/{key}")).expect("a model")),
        text(0, key),
        Piece::Thinking { block: 1, delta: key.to_owned() },
        Piece::Signature { block: 1, delta: key.to_owned() },
        Piece::ToolCall { block: 2, id: said("id"), name: said("name"), arguments: json.clone() },
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
    let place = Place::new();
    read(place.recorder(Said::new(items, End::Ends)).open(asks(&format!("my key is {key}")))).await;
    let content = place.content();
    assert!(!content.contains("SECRET"), "{content}");
    assert_eq!(content.matches("[redacted]").count(), 14);
    let replayed = read(place.replay().open(asks(&format!("my key is {key}")))).await;
    let message = "wrong key [redacted]".to_owned();
    assert_eq!(replayed.failure, Some(ProviderError::Authentication { message }));
}

#[tokio::test]
async fn an_answer_that_breaks_off_inside_a_key_shows_no_more_than_it_must() {
    // Too little of it to be a key, and then enough.
    let cases = [
        (vec![text(0, "sk-ant-0123")], vec![text(0, "sk-ant-0123")]),
        (
            vec![text(0, "a sk-ant-0123"), text(0, "456789"), text(0, "abcdef")],
            vec![text(0, "a [redacted]"), text(0, ""), text(0, "")],
        ),
    ];
    for (said, written) in cases {
        let place = Place::new();
        ask(&place.recorder(Said::pieces(said)), "a").await;
        let expected = Read { pieces: written, failure: None };
        assert_eq!(ask(&place.replay(), "a").await, expected);
    }
}

#[tokio::test]
async fn pieces_wait_in_order_until_it_is_known_that_they_hold_no_key() {
    let place = Place::new();
    let said = [text(0, "a s"), Piece::Alive, arguments(1, "B"), text(0, "k"), arguments(1, "!")];
    let provider = place.recorder(Said::pieces(said.to_vec()));
    let mut source = provider.open(request("a"));
    // The request, and how many pieces are written after each that was said.
    for written in [0, 0, 0, 0, 0] {
        source.next().await;
        assert_eq!(place.lines().len(), 1 + written);
    }
    source.next().await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: said.to_vec(), failure: None });
}

#[tokio::test]
async fn the_end_of_a_block_is_the_end_of_what_may_be_a_key() {
    let place = Place::new();
    let said = [text(0, "sk-0123"), Piece::BlockEnd { block: 0 }, text(1, "456789abcdef0123")];
    let provider = place.recorder(Said::pieces(said.to_vec()));
    let mut source = provider.open(request("a"));
    for written in [0, 2, 3] {
        source.next().await;
        assert_eq!(place.lines().len(), 1 + written);
    }
    source.next().await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: said.to_vec(), failure: None });
}

#[tokio::test]
async fn no_more_than_a_thousand_pieces_wait() {
    let place = Place::new();
    let others = vec![text(1, "a"); 2000];
    let said = [vec![text(0, "s")], others, vec![text(0, "k")]].concat();
    let provider = place.recorder(Said::pieces(said.clone()));
    let mut source = provider.open(request("a"));
    for _ in 0..1025 {
        source.next().await;
    }
    assert_eq!(place.lines().len(), 1 + 1025);
    read(source).await;
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: said, failure: None });
}

#[tokio::test]
async fn blocks_are_read_each_by_itself() {
    let said = vec![
        text(0, "b"),
        arguments(1, "sk-"),
        text(0, "ear"),
        arguments(1, "0123456789abcdef"),
        Piece::BlockEnd { block: 0 },
        arguments(1, "\""),
        Piece::Done,
    ];
    let place = Place::new();
    ask(&place.recorder(Said::pieces(said.clone())), "a").await;
    let mut expected = said;
    expected[1] = arguments(1, "[redacted]");
    expected[3] = arguments(1, "");
    assert_eq!(ask(&place.replay(), "a").await, Read { pieces: expected, failure: None });
}

#[tokio::test]
async fn a_request_with_a_key_is_found_again_with_that_key_or_another() {
    let place = Place::new();
    let inner = scripted("[[reply]]\nsteps = [{ text = 'thanks' }]");
    read(place.recorder(inner).open(asks("take ghp_0123456789abcdef01"))).await;
    let replay = place.replay();
    assert_eq!(read(replay.open(asks("take ghp_fedcba987654321001"))).await.failure, None);
}

proptest! {
    #[test]
    fn how_a_text_is_cut_makes_no_difference(
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
        // Once is enough.
        prop_assert_eq!(runtime.block_on(replayed(&[&whole])), whole);
    }
}
