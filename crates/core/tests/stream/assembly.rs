//! Text, thinking and sealed blocks out of pieces; usage, model and the reason to stop.

use antiphon_core::StopReason::{Aborted, EndTurn, Error, Length, ToolUse, Unknown};
use antiphon_core::{
    AssistantBlock, AssistantMessage, ModelRef, OpaqueBlock, Piece, RawJson, StopReason, Usage,
};

use crate::{
    call, end, message, opaque, seen, signature, stop, text, text_delta, thinking, thinking_delta,
    thought,
};

/// The blocks these pieces make.
fn blocks(pieces: impl IntoIterator<Item = Piece>) -> Vec<AssistantBlock> {
    let seen = seen(pieces.into_iter().chain([Piece::Done]));
    assert_eq!(seen.end, Ok(()));
    seen.message.content
}

fn sealed(value: &str) -> AssistantBlock {
    AssistantBlock::Opaque(OpaqueBlock {
        kind: "redacted_thinking".to_owned(),
        value: RawJson::parse(value).unwrap(),
    })
}

#[test]
fn blocks_are_in_the_order_they_were_opened_with_any_numbers() {
    assert_eq!(
        blocks([text(9, "a"), thinking(2, "b"), text(0, "c"), text(9, "d")]),
        [AssistantBlock::text("ad"), thought("b", None), AssistantBlock::text("c")]
    );
}

#[test]
fn every_delta_that_is_not_empty_is_an_event() {
    let seen = seen([
        thinking(0, ""),
        thinking(0, "h"),
        thinking(0, "m"),
        text(1, ""),
        text(1, "o"),
        text(1, ""),
        text(1, "k"),
        Piece::Done,
    ]);
    assert_eq!(
        seen.events,
        [thinking_delta("h"), thinking_delta("m"), text_delta("o"), text_delta("k")]
    );
}

#[test]
fn a_block_in_which_nothing_came_is_left_out() {
    assert_eq!(blocks([text(0, ""), thinking(1, ""), end(0), end(1), signature(2, "")]), []);
}

#[test]
fn thinking_is_signed_when_it_ended() {
    let signed = || [thinking(0, "hm"), signature(0, "c2"), signature(0, "ln")];
    assert_eq!(blocks(signed()), [thought("hm", Some("c2ln"))]);
    assert_eq!(
        seen(signed().into_iter().chain([end(0)])).message,
        message(Error, vec![thought("hm", Some("c2ln"))])
    );
    assert_eq!(blocks([signature(0, "c2ln")]), [thought("", Some("c2ln"))]);
}

#[test]
fn half_a_signature_is_left_out_of_a_partial_message() {
    assert_eq!(
        seen([thinking(0, "hm"), signature(0, "c2")]).message,
        message(Error, vec![thought("hm", None)])
    );
    assert_eq!(seen([thinking(0, ""), signature(0, "c2")]).message, message(Error, vec![]));
}

#[test]
fn a_sealed_block_is_stored_unchanged_and_never_shown() {
    let seen = seen([
        opaque(0, r#"{"data": "x", "data": 1.0}"#),
        text(1, "hi"),
        opaque(2, "null"),
        end(2),
        Piece::Done,
    ]);
    assert_eq!(seen.events, [text_delta("hi")]);
    assert_eq!(
        seen.message.content,
        [sealed(r#"{"data": "x", "data": 1.0}"#), AssistantBlock::text("hi"), sealed("null"),]
    );
}

#[test]
fn a_block_may_be_ended_twice() {
    assert_eq!(blocks([text(0, "hi"), end(0), end(0)]), [AssistantBlock::text("hi")]);
}

#[test]
fn a_sign_of_life_means_nothing() {
    let alive = seen([Piece::Alive, text(0, "hi"), Piece::Alive, Piece::Done]);
    assert_eq!(alive, seen([text(0, "hi"), Piece::Done]));
}

#[test]
fn the_last_word_on_model_usage_and_reason_counts() {
    let usage = |output_tokens| Usage {
        input_tokens: 1,
        output_tokens,
        cache_read_tokens: Some(5),
        cache_write_tokens: None,
    };
    let model = |text| ModelRef::parse(text).unwrap();
    let seen = seen([
        Piece::Model(model("p/asked")),
        Piece::Usage(usage(1)),
        text(0, "hi"),
        stop(Unknown, "odd"),
        Piece::Model(model("p/answered")),
        stop(EndTurn, "stop"),
        Piece::Usage(usage(7)),
        Piece::Done,
    ]);
    assert_eq!(
        seen.message,
        AssistantMessage {
            raw_stop_reason: "stop".to_owned(),
            usage: usage(7),
            model: Some(model("p/answered")),
            ..message(EndTurn, vec![AssistantBlock::text("hi")])
        }
    );
}

#[test]
fn a_partial_message_has_the_usage_and_the_word_of_the_provider_but_not_its_reason() {
    let usage = Usage { input_tokens: 3, ..Usage::default() };
    let seen = seen([Piece::Usage(usage), text(0, "hi"), stop(EndTurn, "stop")]);
    assert_eq!(
        seen.message,
        AssistantMessage {
            raw_stop_reason: "stop".to_owned(),
            usage,
            ..message(Error, vec![AssistantBlock::text("hi")])
        }
    );
}

/// What the wire says, what the message says when it calls nothing, and when it calls a tool.
const REASONS: [(Option<StopReason>, StopReason, StopReason); 6] = [
    (None, Unknown, ToolUse),
    (Some(EndTurn), EndTurn, ToolUse),
    (Some(Unknown), Unknown, ToolUse),
    (Some(Length), Length, Length),
    (Some(Error), Error, Error),
    (Some(Aborted), Aborted, Aborted),
];

#[test]
fn an_answer_that_calls_tools_stopped_for_them_unless_it_was_cut_short() {
    for (said, plain, calling) in REASONS {
        let reason = |first: Piece| {
            let stop = said.map(|reason| stop(reason, "raw"));
            seen([first].into_iter().chain(stop).chain([Piece::Done])).message.stop_reason
        };
        assert_eq!(reason(text(0, "hi")), plain, "{said:?}");
        assert_eq!(reason(call(0, "a", "read", "{}")), calling, "{said:?}");
    }
    let tool_use = seen([call(0, "a", "read", ""), stop(ToolUse, ""), Piece::Done]);
    assert_eq!(tool_use.message.stop_reason, ToolUse);
}

#[test]
fn an_answer_that_calls_nothing_did_not_stop_for_its_calls() {
    let seen = seen([text(0, "hi"), stop(ToolUse, "tool_calls"), Piece::Done]);
    assert_ne!(seen.message.stop_reason, ToolUse);
}
