use antiphon_core::{InputBlock, Provider, RawJson, Request, Tool, UserMessage};
use antiphon_scripted::Replay;

use crate::world::{AT, RecordingPath, ask, read, refusal, request, scripted};

/// A replay of these recorded requests.
async fn recorded(requests: Vec<Request>) -> Replay {
    let place = RecordingPath::new();
    let provider = place.recorder(scripted("[[reply]]\nsteps = []"));
    for request in requests {
        read(provider.open(request)).await;
    }
    place.replay()
}

async fn differs(recorded_request: Request, requested: Request) -> String {
    let message = refusal(&recorded(vec![recorded_request]).await, requested).await;
    let start = "this request was not recorded: it differs from the nearest ";
    message.strip_prefix(start).expect("a difference").to_owned()
}

fn with_tool(parameters: &str) -> Request {
    let tool = Tool {
        name: "a/b~c".to_owned(),
        description: String::new(),
        parameters: RawJson::parse(parameters).expect("JSON"),
    };
    Request { tools: vec![tool.into()], ..request("a") }
}

fn two(first: &str, second: &str) -> Request {
    let content = vec![InputBlock::text(first), InputBlock::text(second)];
    let message = UserMessage { content, timestamp: AT };
    Request { messages: vec![message.into()].into(), ..request("") }
}

#[tokio::test]
async fn the_first_difference_is_named_by_its_pointer() {
    let cases = [
        (
            request("one"),
            request("two"),
            r#"at /messages/0/content/0/text: recorded "one", asked "two""#,
        ),
        (
            two("same", "one"),
            two("same", "two"),
            r#"at /messages/0/content/1/text: recorded "one", asked "two""#,
        ),
        (
            request("a"),
            Request { model: "other".to_owned(), ..request("b") },
            r#"at /model: recorded "model", asked "other""#,
        ),
        (
            request("a"),
            Request { system_prompt: "scene".to_owned(), ..request("b") },
            r#"at /system_prompt: recorded nothing, asked "scene""#,
        ),
        (
            Request { system_prompt: "scene".to_owned(), ..request("a") },
            request("b"),
            r#"at /system_prompt: recorded "scene", asked nothing"#,
        ),
        (
            with_tool(r#"{"x/y": {"~": 1}}"#),
            with_tool(r#"{"x/y": {"~": 2}}"#),
            "at /tools/0/parameters/x~1y/~0: recorded 1, asked 2",
        ),
        (
            two("a", "b"),
            request("a"),
            r#"at /messages/0/content/1: recorded {"type":"text","text":"b"}, asked nothing"#,
        ),
    ];
    for (recorded, requested, expected) in cases {
        assert_eq!(differs(recorded.clone(), requested.clone()).await, expected);
    }
}

#[tokio::test]
async fn the_same_values_serialized_differently_are_another_request() {
    for (one, other, byte) in [
        (r#"{"a":1.0,"b":2}"#, r#"{"a":1.00,"b":2}"#, 183),
        (r#"{"a":1.0,"b":2}"#, r#"{"a":1.0, "b":2}"#, 184),
        (r#"{"a":1.0,"b":2}"#, r#"{"b":2,"a":1.0}"#, 177),
    ] {
        assert_eq!(
            differs(with_tool(one), with_tool(other)).await,
            format!("only in how its JSON is written, from byte {byte} on")
        );
    }
}

#[tokio::test]
async fn the_nearest_request_has_the_longest_common_prefix() {
    let replay = recorded(vec![request("x"), two("a", "one"), two("a", "other")]).await;
    assert_eq!(
        refusal(&replay, two("a", "two")).await,
        "this request was not recorded: it differs from the nearest at \
         /messages/0/content/1/text: recorded \"one\", asked \"two\""
    );
}

#[tokio::test]
async fn a_difference_far_into_a_long_text_is_shown_in_context() {
    let start = "é".repeat(5000);
    let (one, two) = (format!("{start}one{start}"), format!("{start}two{start}"));
    let message = differs(request(&one), request(&two)).await;
    let around = |word: &str| format!("…{}{word}{}…", "é".repeat(20), "é".repeat(57));
    assert_eq!(
        message,
        format!(
            "at /messages/0/content/0/text: recorded {}, asked {}",
            around("one"),
            around("two")
        )
    );
}

#[tokio::test]
async fn an_empty_recording_is_reported() {
    let place = RecordingPath::holding("");
    assert_eq!(
        refusal(&place.replay(), request("a")).await,
        "this request was not recorded: the recording is empty"
    );
}

#[tokio::test]
async fn keys_are_redacted_in_differences() {
    let place = RecordingPath::new();
    ask(&place.recorder(scripted("[[reply]]\nsteps = []")), "use sk-ant-0123456789abcdef").await;
    let message = refusal(&place.replay(), request("drop sk-ant-fedcba9876543210")).await;
    assert!(
        message.ends_with(r#"recorded "use [redacted]", asked "drop [redacted]""#),
        "{message}"
    );
}
