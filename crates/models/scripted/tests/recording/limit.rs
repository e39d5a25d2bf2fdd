use std::fs::{self, File};
use std::io::Write;

use antiphon_core::stream::BLOCKS_MAX;
use antiphon_core::{Piece, Provider};
use antiphon_scripted::{LINE_BYTES_MAX, RECORDING_BYTES_MAX, Recorder, Recording, RecordingError};
use futures_util::StreamExt;

use crate::fixed_provider::{FixedProvider, text};
use crate::world::{RecordingPath, ask, request};

/// An answer of one text of this many bytes.
fn long(bytes: usize) -> FixedProvider {
    FixedProvider::pieces(vec![text(0, &"x".repeat(bytes)), Piece::Done])
}

/// Length of a line without its text.
const AROUND: usize = r#"{"exchange":1,"piece":{"text":{"block":0,"delta":""}}}"#.len() + 1;

#[tokio::test]
async fn a_line_of_the_largest_length_is_written_and_read() {
    let place = RecordingPath::new();
    let provider = place.recorder(long(LINE_BYTES_MAX - AROUND));
    ask(&provider, "a").await;
    assert_eq!(provider.failure(), None);
    let recording = place.load();
    assert_eq!((recording.exchanges(), recording.unfinished()), (1, 0));
}

#[tokio::test]
async fn a_longer_line_stops_the_recording_and_not_the_answer() {
    let place = RecordingPath::new();
    let provider = place.recorder(long(LINE_BYTES_MAX - AROUND + 1));
    let answer = ask(&provider, "a").await;
    assert_eq!((answer.pieces.len(), answer.failure), (2, None));
    let too_long = RecordingError::LineTooLong { path: place.path.clone(), line: 2 };
    assert_eq!(provider.failure(), Some(too_long));
    // The existing lines stay, and nothing follows.
    let content = place.content();
    assert!(provider.open(request("b")).next().await.is_some());
    assert_eq!((content.lines().count(), place.content()), (1, content));
}

#[test]
fn a_line_that_is_too_long_is_not_read() {
    let place = RecordingPath::holding("x".repeat(LINE_BYTES_MAX + 1));
    let too_long = RecordingError::LineTooLong { path: place.path.clone(), line: 1 };
    assert_eq!(Recording::load(&place.path).expect_err("it is too long"), too_long);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let place = RecordingPath::holding("");
    let bytes = RECORDING_BYTES_MAX + 1;
    let file = File::options().write(true).open(&place.path).expect("a file");
    file.set_len(bytes).expect("a hole takes no room");
    let too_large = RecordingError::TooLarge { path: place.path.clone(), bytes };
    assert_eq!(Recording::load(&place.path).expect_err("it is too large"), too_large);
    let refused = Recorder::append(FixedProvider::pieces(Vec::new()), &place.path)
        .expect_err("it is too large");
    assert_eq!(refused, too_large);
}

#[tokio::test]
async fn a_full_recording_accepts_nothing_more() {
    // Requests that leave room for one more line and not for two.
    let place = RecordingPath::new();
    let mut file = File::create(&place.path).expect("a file");
    let filler = "x".repeat(LINE_BYTES_MAX - 100);
    for number in 1..=8 {
        writeln!(file, r#"{{"exchange":{number},"request":"{filler}"}}"#).expect("room");
    }
    let size = fs::metadata(&place.path).expect("a file").len();
    let line = |bytes: usize| RECORDING_BYTES_MAX - size - bytes as u64;
    let rest = usize::try_from(line(300)).expect("a size");
    writeln!(file, r#"{{"exchange":9,"request":"{}"}}"#, "x".repeat(rest)).expect("room");
    drop(file);
    let provider =
        place.recorder(FixedProvider::pieces(vec![text(0, &"y".repeat(200)), Piece::Done]));
    let answer = ask(&provider, "a").await;
    assert_eq!(answer.pieces.len(), 2);
    let failure = provider.failure().expect("it is full");
    assert!(matches!(failure, RecordingError::TooLarge { .. }), "{failure}");
    // The request still fit.
    let size = fs::metadata(&place.path).expect("a file").len();
    assert!((RECORDING_BYTES_MAX - 300..RECORDING_BYTES_MAX).contains(&size), "{size}");
}

#[tokio::test]
async fn an_answer_with_too_many_blocks_stops_the_recording() {
    let blocks = u32::try_from(BLOCKS_MAX).expect("a number") + 1;
    let pieces: Vec<Piece> = (0..blocks).map(|block| text(block, "a")).collect();
    let place = RecordingPath::new();
    let provider = place.recorder(FixedProvider::pieces(pieces));
    assert_eq!(ask(&provider, "a").await.pieces.len(), BLOCKS_MAX + 1);
    let reason = format!("more than {BLOCKS_MAX} blocks of an answer are open");
    let expected = RecordingError::Unwritable { path: place.path.clone(), reason };
    assert_eq!(provider.failure(), Some(expected));
    assert_eq!(place.load().unfinished(), 1);
}
