use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, Piece, ProviderError, RawJson, StopReason,
    StreamError, StreamEvent, ToolArguments, ToolCallBlock, ToolCallId, Usage,
};

use crate::piece::{arguments, delta, model, opening};
use crate::world::{AT, RequestBuilder, message, pieces, provider, read};

#[tokio::test]
async fn interleaved_calls_alternate_and_are_assembled_separately() {
    let provider = provider(
        r#"
        chunk_chars = 5
        [[reply]]
        interleave = true
        steps = [
            { call = { name = "a", arguments = { x = 1 } } },
            { call = { name = "b", arguments = { text = "{{turn}}" } } },
            { text = "." },
            { call = { name = "c" } },
        ]
        "#,
    );
    let request = RequestBuilder::new().user("go").assistant("ok").user("on").request();
    let (sent, failure) = pieces(&provider, request.clone()).await;
    assert_eq!(failure, None);
    assert_eq!(
        sent[1..sent.len() - 3],
        [
            opening(0, "call_1_0", "a"),
            opening(1, "call_1_1", "b"),
            arguments(0, r#"{"x":"#),
            arguments(1, r#"{"tex"#),
            arguments(0, "1}"),
            arguments(1, r#"t":"1"#),
            Piece::BlockEnd { block: 0 },
            arguments(1, r#""}"#),
            Piece::BlockEnd { block: 1 },
            delta(2, "."),
            Piece::BlockEnd { block: 2 },
            opening(3, "call_1_2", "c"),
            arguments(3, "{}"),
            Piece::BlockEnd { block: 3 },
        ]
    );
    let message = message(&provider, request).await;
    let calls: Vec<_> = message
        .tool_calls()
        .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.clone()))
        .collect();
    let object = |text| ToolArguments::Object(RawJson::parse(text).expect("JSON"));
    assert_eq!(
        calls,
        [
            ("call_1_0", "a", object(r#"{"x":1}"#)),
            ("call_1_1", "b", object(r#"{"text":"1"}"#)),
            ("call_1_2", "c", object("{}")),
        ]
    );
}

#[tokio::test]
async fn a_call_that_is_cut_off_is_omitted() {
    let provider = provider(
        r#"
        [[reply]]
        interleave = true
        steps = [
            { text = "so", unfinished = true },
            { call = { name = "done", arguments = {} } },
            { call = { name = "broken", arguments_json = '{"a":' }, unfinished = true },
            { cut = true },
        ]
        "#,
    );
    let request = RequestBuilder::new().user("go").request();
    let (events, message, failure) = read(&provider, request, Cancel::never()).await;
    let id = |text| ToolCallId::parse(text).expect("an id");
    let done = ToolCallBlock {
        id: id("call_0_0"),
        name: "done".to_owned(),
        arguments: ToolArguments::Object(RawJson::empty_object()),
        signature: None,
    };
    let begin =
        |text, name: &str| StreamEvent::ToolCallBegin { id: id(text), name: name.to_owned() };
    let more =
        |text, delta: &str| StreamEvent::ToolCallDelta { id: id(text), delta: delta.to_owned() };
    assert_eq!(
        events,
        [
            StreamEvent::TextDelta { delta: "so".to_owned() },
            begin("call_0_0", "done"),
            begin("call_0_1", "broken"),
            more("call_0_0", "{}"),
            more("call_0_1", r#"{"a":"#),
            StreamEvent::ToolCallEnd { call: done.clone() },
        ]
    );
    assert_eq!(
        message,
        AssistantMessage {
            content: vec![AssistantBlock::text("so"), AssistantBlock::ToolCall(done)],
            stop_reason: StopReason::Error,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: Some(model("script")),
            timestamp: AT,
        }
    );
    assert_eq!(failure, Some(StreamError::Provider(ProviderError::Cut)));
}

#[tokio::test]
async fn open_blocks_are_closed_by_the_end_of_the_answer() {
    let provider = provider(
        "[[reply]]\nsteps = [{ call = { name = 'a', arguments_json = '{' }, unfinished = true }]",
    );
    let message = message(&provider, RequestBuilder::new().request()).await;
    let calls: Vec<_> = message.tool_calls().cloned().collect();
    assert_eq!(
        calls,
        [ToolCallBlock {
            id: ToolCallId::parse("call_0_0").expect("an id"),
            name: "a".to_owned(),
            arguments: ToolArguments::Malformed("{".to_owned()),
            signature: None,
        }]
    );
}
