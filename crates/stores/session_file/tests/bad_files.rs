//! The error names what is wrong with a file that is not a session file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use antiphon_core::{Session, SessionId};
use antiphon_session_file::{FILE_BYTES_MAX, FormatError, load, parse, save};

const SEED: &str = include_str!("fixtures/seed.json");

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The error for a file with this content, without the folder's name.
    fn error_of(&self, content: &[u8]) -> String {
        let path = self.path("s.json");
        fs::write(&path, content).unwrap();
        load(&path).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
    }
}

fn session() -> Session {
    parse(SEED).unwrap()
}

#[test]
fn each_bad_content_has_its_own_message() {
    let folder = Folder::new();
    let cases: [(&str, String, &str); 12] = [
        ("empty", String::new(), "FILE: the file is empty"),
        ("blank", " \n\t".to_owned(), "FILE: the file is empty"),
        (
            "version 2",
            SEED.replace(r#""version": 1"#, r#""version": 2"#),
            "FILE: session file version 2 is not supported, only 1",
        ),
        (
            "version text",
            SEED.replace(r#""version": 1"#, r#""version": "1""#),
            "FILE: session file version \"1\" is not supported, only 1",
        ),
        (
            "a later shape",
            r#"{"version": 3, "turns": {}}"#.to_owned(),
            "FILE: session file version 3 is not supported, only 1",
        ),
        (
            "no version",
            SEED.replace(r#""version": 1,"#, ""),
            "FILE: not a session file: missing field `version`",
        ),
        (
            "unknown message",
            SEED.replace(r#""type": "tool_result""#, r#""type": "system""#),
            "FILE: messages[2]: unknown message type `system`, expected one of `user`, \
             `assistant`, `tool_result`",
        ),
        (
            "unknown message, and fields are missing",
            r#"{"messages": [{"type": "banana"}]}"#.to_owned(),
            "FILE: messages[0]: unknown message type `banana`, expected one of `user`, `assistant`, \
             `tool_result`",
        ),
        (
            "unknown block",
            SEED.replace(r#""type": "tool_call""#, r#""type": "video""#),
            "FILE: messages[1]: content[1]: unknown block type `video`, expected one of `text`, \
             `thinking`, `image`, `tool_call`",
        ),
        (
            "block in the wrong message",
            SEED.replacen(r#"{"type": "text", "text": "Fix"#, r#"{"type": "thinking", "x": "F"#, 1),
            "FILE: messages[0]: content[0]: a `user` message cannot hold a `thinking` block",
        ),
        (
            "unknown stop reason",
            SEED.replace(r#""stop_reason": "tool_use""#, r#""stop_reason": "bored""#),
            "FILE: messages[1]: stop_reason: unknown variant `bored`, expected one of `end_turn`, `length`, \
             `tool_use`, `error`, `aborted`, `unknown`",
        ),
        (
            "duplicate key",
            SEED.replace(r#""version": 1,"#, r#""version": 1, "version": 1,"#),
            "FILE: not a session file: duplicate field `version` at line 2 column 25",
        ),
    ];
    for (name, content, expected) in cases {
        assert_eq!(folder.error_of(content.as_bytes()), expected, "{name}");
    }
}

#[test]
fn an_error_in_a_message_names_its_field() {
    let folder = Folder::new();
    let thinking = |signature: &str| {
        let block = format!(
            r#"{{"type": "thinking", "thinking": "so", "signature": {signature}}}, {{"type": "tool_call""#
        );
        SEED.replace(r#"{"type": "tool_call""#, &block)
    };
    let not_base64 = "FILE: messages[1]: content[1].signature: it is not base64: remove it, or export the \
                      session again";
    for (content, expected) in [
        (
            thinking("5"),
            "FILE: messages[1]: content[1].signature: invalid type: integer `5`, expected a string",
        ),
        (thinking(r#""two words""#), not_base64),
        (thinking(r#""""#), not_base64),
        (thinking(r#""a===""#), not_base64),
        (
            SEED.replace(r#""output_tokens": 42"#, r#""output_tokens": -1"#),
            "FILE: messages[1]: usage.output_tokens: invalid value: integer `-1`, expected u64",
        ),
    ] {
        assert_eq!(folder.error_of(content.as_bytes()), expected);
    }
    // Providers use both alphabets, with padding and without; some sign with an id.
    for signature in ["c2lnbmVk", "eA==", "ab-_", "a/b+", "6f9619ff-8b86-d011-b42d-00c04fc964ff"] {
        parse(&thinking(&format!("\"{signature}\""))).unwrap();
    }
}

#[test]
fn an_unknown_message_is_named_before_what_is_wrong_with_any_message() {
    let folder = Folder::new();
    for (index, messages) in [
        (0, r#"[{"type": "robot", "content": [{"text": "x"}], "usage": {}}]"#),
        (1, r#"[{"type": "user"}, {"type": "robot", "content": "x"}]"#),
    ] {
        let content = format!(r#"{{"messages": {messages}}}"#);
        let expected = format!(
            "FILE: messages[{index}]: unknown message type `robot`, expected one of `user`, `assistant`, \
             `tool_result`"
        );
        assert_eq!(folder.error_of(content.as_bytes()), expected);
    }
}

#[test]
fn invalid_utf8_is_reported_with_its_place() {
    let folder = Folder::new();
    assert_eq!(
        folder.error_of(b"{\"version\":1,\"id\":\"\xff\"}"),
        "FILE is not UTF-8: byte 19 is invalid"
    );
}

#[test]
fn ten_megabytes_of_nesting_are_refused() {
    let deep = "[".repeat(10 * 1024 * 1024);
    assert!(matches!(parse(&deep), Err(FormatError::Malformed { .. })));
    let inside = format!("{}{}", "[".repeat(5_000_000), "]".repeat(5_000_000));
    let text = SEED.replace(r#"{"path": "auth.go"}"#, &format!(r#"{{"x":{inside}}}"#));
    assert_eq!(
        parse(&text),
        Err(FormatError::Message {
            index: 1,
            reason: "content[1].arguments: JSON is nested deeper than 100 levels".to_owned()
        })
    );
}

#[test]
fn an_image_over_the_limit_is_refused() {
    let image = format!(
        r#"{{"type":"image","mime_type":"image/png","data":"{}"}}"#,
        "AAAA".repeat(antiphon_core::IMAGE_BYTES_MAX / 3 + 1)
    );
    let text = SEED.replace(r#"{"type": "text", "text": "Fix the login bug"}"#, &image);
    assert_eq!(
        parse(&text),
        Err(FormatError::Message {
            index: 0,
            reason: "content[0]: an image may have 3932160 bytes at most, this one has 3932163"
                .to_owned()
        })
    );
}

#[test]
fn what_is_not_a_file_is_not_opened() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [folder.path(""), pipe, PathBuf::from("/dev/zero")] {
        let error = load(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{} is not a file", path.display()));
    }
    let missing = load(&folder.path("none")).unwrap_err().to_string();
    assert!(missing.contains("No such file"), "{missing}");
}

#[test]
fn a_file_over_the_limit_is_not_read() {
    let folder = Folder::new();
    let path = folder.path("huge");
    fs::File::create(&path).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
    let error = load(&path).unwrap_err().to_string();
    assert!(error.ends_with("has 268435457 bytes, a session file may have 268435456"), "{error}");
}

#[test]
fn a_list_of_messages_may_be_null() {
    let text = r#"{"version":1,"id":"s","created_at":"2026-02-18T12:00:00Z",
        "updated_at":"2026-02-18T12:00:00Z","messages":null}"#;
    assert_eq!(parse(text).unwrap().messages, []);
    assert_eq!(parse(&format!("\u{FEFF}{text}")).unwrap().id, SessionId::parse("s").unwrap());
}

#[test]
fn a_list_of_messages_may_be_empty_and_not_missing() {
    let text = r#"{"version":1,"id":"s","created_at":"2026-02-18T12:00:00Z",
        "updated_at":"2026-02-18T12:00:00Z","messages":[]}"#;
    assert_eq!(parse(text).unwrap().messages, []);
    let missing = parse(&text.replace(r#","messages":[]"#, "")).unwrap_err().to_string();
    let expected = "not a session file: missing field `messages`";
    assert!(missing.starts_with(expected), "{missing}");
}

#[test]
fn a_saved_file_is_for_its_owner_alone_and_leaves_nothing_beside_it() {
    let folder = Folder::new();
    let path = folder.path("s.json");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    save(&path, &session()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
}

#[test]
fn a_link_is_replaced_and_what_it_points_to_is_left_alone() {
    let folder = Folder::new();
    let (link, target) = (folder.path("link"), folder.path("target"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    save(&link, &session()).unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    assert_eq!(load(&link).unwrap(), session());
}

#[test]
fn a_save_that_fails_leaves_the_old_file() {
    let folder = Folder::new();
    let path = folder.path("taken");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "x").unwrap();
    assert!(save(&path, &session()).is_err());
    assert_eq!(fs::read_to_string(path.join("inside")).unwrap(), "x");
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
    let error = save(&folder.path("no/such/folder.json"), &session()).unwrap_err().to_string();
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn a_reader_never_sees_half_a_file() {
    let folder = Folder::new();
    let path = folder.path("s.json");
    let (short, mut long) = (session(), session());
    long.system_prompt = "x".repeat(300_000);
    save(&path, &short).unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..20 {
                save(&path, &long).unwrap();
                save(&path, &short).unwrap();
            }
        });
        while !writer.is_finished() {
            let seen = load(&path).unwrap();
            assert!(seen == short || seen == long);
        }
    });
}
