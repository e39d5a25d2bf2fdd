use std::time::Duration;

use antiphon_core::stream::MESSAGE_BYTES_MAX;
use antiphon_core::{
    AssistantBlock, AssistantMessage, Cancel, InputBlock, OpaqueBlock, Piece, ProviderError,
    RawJson, Signature, StopReason, StreamError, TextBlock, ThinkingBlock, ToolArguments,
    ToolCallBlock, ToolCallId, Usage, UserMessage,
};
use antiphon_scripted::ANSWER_BYTES_MAX;
use proptest::prelude::*;
use tokio::time::Instant;

use crate::piece::{arguments, delta, model, opening, stop, usage};
use crate::world::{AT, RequestBuilder, message, pieces, provider, read, text};

#[tokio::test]
async fn an_answer_is_sent_piece_by_piece_in_order() {
    let provider = provider(
        r#"
        name = "whole"
        chunk_chars = 3
        [[reply]]
        steps = [
            { thinking = "héé!", signature = "c2ln" },
            { text = "abcd" },
            { opaque = { kind = "sealed", value_json = '{"a": 1.0}' } },
            { call = { name = "ls", signature = "Y2FsbA==" } },
        ]
        "#,
    );
    let thinking = |delta: &str| Piece::Thinking { block: 0, delta: delta.to_owned() };
    let signature = |block, delta: &str| Piece::Signature { block, delta: delta.to_owned() };
    let expected = vec![
        Piece::Model(model("whole")),
        thinking("héé"),
        thinking("!"),
        signature(0, "c2ln"),
        Piece::BlockEnd { block: 0 },
        delta(1, "abc"),
        delta(1, "d"),
        Piece::BlockEnd { block: 1 },
        Piece::Opaque {
            block: 2,
            kind: "sealed".to_owned(),
            value: RawJson::parse(r#"{"a": 1.0}"#).expect("JSON"),
        },
        opening(3, "call_0_0", "ls"),
        arguments(3, "{}"),
        signature(3, "Y2FsbA=="),
        Piece::BlockEnd { block: 3 },
        // Four characters of thinking and text each, ten of the block, four of the call.
        Piece::Usage(usage(1, 6)),
        stop(StopReason::ToolUse, "tool_use"),
        Piece::Done,
    ];
    let request = RequestBuilder::new().user("hey").request();
    assert_eq!(pieces(&provider, request).await, (expected, None));
}

#[tokio::test]
async fn the_pieces_assemble_into_the_message() {
    let provider = provider(
        r#"
        [[reply]]
        usage = { input_tokens = 5, output_tokens = 6, cache_read_tokens = 7, cache_write_tokens = 8 }
        steps = [
            { thinking = "hm", signature = "c2ln" },
            { thinking = "", signature = "b25seQ==" },
            { text = "" },
            { text = "a {{last_user}}" },
            { opaque = { kind = "sealed", value_json = '[1]' } },
            { call = { name = "ls", id = "mine", arguments_json = '{"n": 1.0}', signature = "cw==" } },
        ]
        "#,
    );
    let expected = AssistantMessage {
        content: vec![
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: "hm".to_owned(),
                signature: Some(Signature("c2ln".to_owned())),
            }),
            AssistantBlock::Thinking(ThinkingBlock {
                thinking: String::new(),
                signature: Some(Signature("b25seQ==".to_owned())),
            }),
            AssistantBlock::Text(TextBlock { text: "a {{turn}}".to_owned() }),
            AssistantBlock::Opaque(OpaqueBlock {
                kind: "sealed".to_owned(),
                value: RawJson::parse("[1]").expect("JSON"),
            }),
            AssistantBlock::ToolCall(ToolCallBlock {
                id: ToolCallId::parse("mine").expect("an id"),
                name: "ls".to_owned(),
                arguments: ToolArguments::Object(RawJson::parse(r#"{"n": 1.0}"#).expect("JSON")),
                signature: Some(Signature("cw==".to_owned())),
            }),
        ],
        stop_reason: StopReason::ToolUse,
        raw_stop_reason: "tool_use".to_owned(),
        usage: Usage {
            input_tokens: 5,
            output_tokens: 6,
            cache_read_tokens: Some(7),
            cache_write_tokens: Some(8),
        },
        model: Some(model("script")),
        timestamp: AT,
    };
    let request = RequestBuilder::new().user("{{turn}}").request();
    assert_eq!(message(&provider, request).await, expected);
}

#[tokio::test]
async fn an_empty_answer_is_complete() {
    let provider = provider("[[reply]]\nsteps = []\nstop = 'length'\nraw_stop = 'max_tokens'");
    let expected = vec![
        Piece::Model(model("script")),
        Piece::Usage(usage(0, 0)),
        stop(StopReason::Length, "max_tokens"),
        Piece::Done,
    ];
    let request = RequestBuilder::new().request();
    assert_eq!(pieces(&provider, request).await, (expected, None));
}

#[tokio::test(start_paused = true)]
async fn delays_and_pauses_take_their_time() {
    let provider = provider(
        "
        delay_ms = 1000
        chunk_chars = 1
        [[reply]]
        when = { turn = 0 }
        steps = [{ delay_ms = 500 }, { text = 'abc' }, { call = { name = 'a' } }]
        [[reply]]
        delay_ms = 0
        chunk_chars = 100
        steps = [{ text = 'abc' }]
        ",
    );
    let start = Instant::now();
    let request = RequestBuilder::new().user("a");
    assert_eq!(text(&provider, &request).await, "abc");
    // A pause, three characters, and a call with its two.
    assert_eq!(start.elapsed(), Duration::from_millis(6500));
    let request = request.assistant("b");
    assert_eq!(text(&provider, &request).await, "abc");
    assert_eq!(start.elapsed(), Duration::from_millis(6500));
}

#[tokio::test(start_paused = true)]
async fn a_keep_alive_has_no_delay_and_no_content() {
    let provider = provider(
        "delay_ms = 1000\n[[reply]]\nsteps = [{ alive = true }, { text = 'a' }, { alive = true }]",
    );
    let start = Instant::now();
    let expected = vec![
        Piece::Alive,
        Piece::Model(model("script")),
        delta(0, "a"),
        Piece::BlockEnd { block: 0 },
        Piece::Alive,
        Piece::Usage(usage(0, 1)),
        stop(StopReason::EndTurn, "end_turn"),
        Piece::Done,
    ];
    assert_eq!(pieces(&provider, RequestBuilder::new().request()).await, (expected, None));
    assert_eq!(start.elapsed(), Duration::from_millis(1000));
    assert_eq!(text(&provider, &RequestBuilder::new()).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_ends_a_stall() {
    let provider = provider("[[reply]]\nsteps = [{ text = 'wait' }, { stall = true }]");
    let cancel = Cancel::when(tokio::time::sleep(Duration::from_hours(1)));
    let (_, message, failure) = read(&provider, RequestBuilder::new().request(), cancel).await;
    assert_eq!(failure, Some(StreamError::Canceled));
    assert_eq!(
        message,
        AssistantMessage {
            content: vec![AssistantBlock::text("wait")],
            stop_reason: StopReason::Aborted,
            raw_stop_reason: String::new(),
            usage: Usage::default(),
            model: Some(model("script")),
            timestamp: AT,
        }
    );
}

#[tokio::test]
async fn a_huge_answer_without_delays_yields_to_other_tasks() {
    let provider = provider(
        "chunk_chars = 1000\n[[reply]]\nsteps = [{ text = 'abcdefgh', repeat = 10_000_000 }]",
    );
    let mut others = tokio::task::JoinSet::new();
    others.spawn(async {});
    let cancel = Cancel::when(async move {
        others.join_next().await;
    });
    let (events, _, failure) = read(&provider, RequestBuilder::new().request(), cancel).await;
    assert_eq!(failure, Some(StreamError::Canceled));
    assert!(events.len() < 10_000, "{} events", events.len());
}

#[tokio::test]
async fn a_repeated_text_is_one_block_in_even_deltas() {
    let provider = provider("chunk_chars = 4\n[[reply]]\nsteps = [{ text = 'añb', repeat = 3 }]");
    let (sent, _) = pieces(&provider, RequestBuilder::new().request()).await;
    assert_eq!(
        sent[1..],
        [
            delta(0, "añba"),
            delta(0, "ñbañ"),
            delta(0, "b"),
            Piece::BlockEnd { block: 0 },
            Piece::Usage(usage(0, 3)),
            stop(StopReason::EndTurn, "end_turn"),
            Piece::Done,
        ]
    );
}

#[tokio::test]
async fn a_script_can_exceed_the_limit_of_a_message() {
    let provider = provider(
        "chunk_chars = 1_000_000\n[[reply]]\nsteps = [{ text = 'abcdefgh', repeat = 9_000_000 }]",
    );
    let (_, _, failure) = read(&provider, RequestBuilder::new().request(), Cancel::never()).await;
    let message = format!("more than {MESSAGE_BYTES_MAX} bytes in one answer");
    assert_eq!(failure, Some(StreamError::Provider(ProviderError::Protocol { message })));
}

#[tokio::test]
async fn placeholders_cannot_exceed_the_limit_of_an_answer() {
    let provider = provider("[[reply]]\nsteps = [{ text = '{{last_user}}', repeat = 10_000_000 }]");
    let request = RequestBuilder::new().user("more than thirteen bytes").request();
    let message = format!(
        "the reply of scripted/script to this request has more than {ANSWER_BYTES_MAX} bytes"
    );
    assert_eq!(
        pieces(&provider, request).await,
        (Vec::new(), Some(ProviderError::InvalidRequest { message }))
    );
}

#[tokio::test]
async fn placeholders_show_the_newest_values_of_the_request() {
    let provider = provider(
        r#"
        [[reply]]
        when = { tool_results = 0 }
        steps = [{ text = "<{{last_user}}|{{last_result}}|{{turn}}>" }]
        [[reply]]
        steps = [{ call = { name = "a", arguments = {
            text = "{{last_result}}", list = ["{{turn}}", 2, 1.5, true], deep = { "{{turn}}" = "x" },
        } } }]
        "#,
    );
    assert_eq!(text(&provider, &RequestBuilder::new()).await, "<||0>");
    let two_blocks = UserMessage {
        content: vec![InputBlock::text("one"), InputBlock::text("two")],
        timestamp: AT,
    };
    let mut request = RequestBuilder::new().user("old").assistant("a").request();
    request.messages.push(two_blocks.into());
    assert_eq!(message(&provider, request).await.text(), "<one\ntwo||1>");
    let request = RequestBuilder::new().user("a").assistant("b").result("say \"{{turn}}\"");
    let message = message(&provider, request.request()).await;
    let arguments: Vec<_> = message.tool_calls().map(|call| &call.arguments).collect();
    let json = r#"{"text":"say \"{{turn}}\"","list":["1",2,1.5,true],"deep":{"{{turn}}":"x"}}"#;
    assert_eq!(arguments, [&ToolArguments::Object(RawJson::parse(json).expect("JSON"))]);
}

#[tokio::test]
async fn usage_is_estimated_from_all_text_and_given_fields_take_precedence() {
    let provider =
        provider("[[reply]]\nusage = { cache_read_tokens = 9 }\nsteps = [{ text = 'four, or 5' }]");
    let request = RequestBuilder::new()
        .system("12345678")
        .tool("12")
        .user("1234")
        .assistant("1234")
        .result("1");
    assert_eq!(
        message(&provider, request.request()).await.usage,
        Usage {
            input_tokens: 6,
            output_tokens: 3,
            cache_read_tokens: Some(9),
            cache_write_tokens: None,
        }
    );
}

proptest! {
    #[test]
    fn deltas_are_never_empty_never_too_long_and_join_to_the_text(
        text in "[^{\\p{C}'\"\\\\]{1,80}",
        chunk_chars in 1_usize..12,
        repeat in 1_usize..5,
    ) {
        let script = format!(
            "chunk_chars = {chunk_chars}\n[[reply]]\nsteps = [{{ text = '{text}', repeat = {repeat} }}]"
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (sent, _) = runtime.block_on(pieces(&provider(&script), RequestBuilder::new().request()));
        let deltas: Vec<&str> = sent
            .iter()
            .filter_map(|piece| if let Piece::Text { delta, .. } = piece { Some(delta.as_str()) } else { None })
            .collect();
        let (last, rest) = deltas.split_last().expect("at least one delta");
        prop_assert!(rest.iter().all(|delta| delta.chars().count() == chunk_chars));
        prop_assert!((1..=chunk_chars).contains(&last.chars().count()));
        prop_assert_eq!(deltas.concat(), text.repeat(repeat));
    }
}
