use std::fs;
use std::os::unix::fs::PermissionsExt;

use antiphon_scripted::{Recorder, Recording, RecordingError};

use crate::fixed_provider::{FixedProvider, text};
use crate::world::{RecordingPath, ask};

fn mode(place: &RecordingPath) -> u32 {
    fs::metadata(&place.path).expect("a file").permissions().mode() & 0o777
}

fn fixed() -> FixedProvider {
    FixedProvider::pieces(vec![text(0, "é"), text(0, "b")])
}

#[test]
fn a_recording_is_private() {
    let place = RecordingPath::new();
    place.recorder(fixed());
    assert_eq!(mode(&place), 0o600);
    // Also if it existed before.
    let place = RecordingPath::holding("");
    fs::set_permissions(&place.path, PermissionsExt::from_mode(0o644)).expect("it is ours");
    place.recorder(fixed());
    assert_eq!(mode(&place), 0o600);
}

#[test]
fn two_recorders_cannot_write_to_the_same_file() {
    let place = RecordingPath::new();
    let first = place.recorder(fixed());
    let second = Recorder::append(fixed(), &place.path);
    let busy = RecordingError::Busy { path: place.path.clone() };
    assert_eq!(second.expect_err("it is locked"), busy);
    // Reading is allowed.
    place.load();
    drop(first);
    place.recorder(fixed());
}

#[tokio::test]
async fn a_crash_at_any_byte_leaves_a_recording_that_can_be_read_and_continued() {
    let whole = RecordingPath::new();
    let provider = whole.recorder(fixed());
    ask(&provider, "a").await;
    ask(&provider, "b").await;
    let bytes = whole.content().into_bytes();
    for length in 0..=bytes.len() {
        let crashed = RecordingPath::holding(&bytes[..length]);
        let complete = bytes[..length].split(|byte| *byte == b'\n').count() as u64 - 1;
        let is_torn = length > 0 && bytes[length - 1] != b'\n';
        let recording = crashed.load();
        assert_eq!(recording.torn_line(), is_torn.then_some(complete + 1), "cut at {length}");
        let before = recording.exchanges();
        ask(&crashed.recorder(fixed()), "c").await;
        let recording = crashed.load();
        assert_eq!((recording.exchanges(), recording.torn_line()), (before + 1, None));
        assert_eq!(ask(&crashed.replay(), "c").await.pieces, [text(0, "é"), text(0, "b")]);
    }
}

#[test]
fn an_invalid_line_is_refused_with_its_number() {
    let good = r#"{"exchange":1,"request":{}}"#;
    let ended = format!("{good}\n{{\"exchange\":1,\"end\":\"cut\"}}");
    let cases = [
        (good, "not json", "expected ident at line 1 column 2"),
        (good, "", "EOF while parsing a value at line 1 column 0"),
        (good, "{\"exchange\":1}", "not one of `request`, `piece` and `end`"),
        (
            good,
            r#"{"exchange":1,"piece":{"alive":{}},"end":"done"}"#,
            "not one of `request`, `piece` and `end`",
        ),
        (good, r#"{"exchange":2,"piece":{"alive":{}}}"#, "exchange 2 has no request"),
        (good, r#"{"exchange":2,"end":"done"}"#, "exchange 2 has no request"),
        (good, good, "exchange 1 has a request already"),
        (&ended, r#"{"exchange":1,"end":"done"}"#, "exchange 1 has ended already"),
        (&ended, r#"{"exchange":1,"piece":{"alive":{}}}"#, "exchange 1 has ended already"),
    ];
    for (before, line, reason) in cases {
        let place = RecordingPath::holding(format!("{before}\n{line}\n{good}\n"));
        let expected = RecordingError::Line {
            path: place.path.clone(),
            line: before.lines().count() as u64 + 1,
            reason: reason.to_owned(),
        };
        assert_eq!(Recording::load(&place.path).expect_err("it is refused"), expected);
        // A file that is not a recording is not changed.
        let content = place.content();
        assert_eq!(Recorder::append(fixed(), &place.path).expect_err("it is refused"), expected);
        assert_eq!(place.content(), content);
    }
}

#[test]
fn unknown_words_and_fields_are_refused() {
    for line in [
        r#"{"exchange":1,"request":{},"more":1}"#,
        r#"{"exchange":-1,"request":{}}"#,
        r#"{"exchange":1,"piece":{"song":{"block":0}}}"#,
        r#"{"exchange":1,"piece":{"text":{"block":0,"delta":"a","more":1}}}"#,
        r#"{"exchange":1,"piece":{"model":"no slash"}}"#,
        r#"{"exchange":1,"end":"tired"}"#,
        r#"{"exchange":1,"end":{"failed":{"cut":{"message":"a"}}}}"#,
    ] {
        let place = RecordingPath::holding(format!("{line}\n"));
        let refused = Recording::load(&place.path).expect_err("it is refused");
        assert!(matches!(refused, RecordingError::Line { line: 1, .. }), "{line}: {refused}");
    }
    let place = RecordingPath::holding(b"\xff\xfe\n");
    assert!(matches!(Recording::load(&place.path), Err(RecordingError::Line { line: 1, .. })));
}

#[test]
fn a_missing_file_and_a_folder_are_refused() {
    let place = RecordingPath::new();
    let gone = Recording::load(&place.path).expect_err("it is not there");
    assert!(matches!(gone, RecordingError::Unreadable { .. }), "{gone}");
    fs::create_dir(&place.path).expect("a folder");
    let folder = Recording::load(&place.path).expect_err("it is a folder");
    let (path, reason) = (place.path.clone(), "not a file".to_owned());
    assert_eq!(folder, RecordingError::Unreadable { path: path.clone(), reason: reason.clone() });
    let folder = Recorder::append(fixed(), &place.path).expect_err("it is a folder");
    assert_eq!(folder, RecordingError::Unwritable { path, reason });
    for path in [place.path.join("no/such/folder"), "/dev/full".into()] {
        let refused = Recorder::append(fixed(), path).expect_err("it is no file");
        assert!(matches!(refused, RecordingError::Unwritable { .. }), "{refused}");
    }
}
