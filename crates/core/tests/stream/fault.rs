//! What a provider may not do. Each is an error that names the block, and the message keeps
//! what was whole before it.

use antiphon_core::stream::{BLOCKS_MAX, MESSAGE_BYTES_MAX};
use antiphon_core::{AssistantBlock, Piece, StopReason};

use crate::{
    begin, call, delta, end, message, object, opaque, protocol, seen, signature, text, text_delta,
    thinking, whole_call,
};

/// Asserts that the last of the pieces is a fault, and its error.
#[track_caller]
fn fails(pieces: impl IntoIterator<Item = Piece>, reason: &str) {
    assert_eq!(seen(pieces.into_iter().chain([Piece::Done])).end, Err(protocol(reason)));
}

#[test]
fn a_block_that_goes_on_after_its_end_is_a_fault() {
    let reason = "block 4 goes on after its end";
    fails([text(4, "a"), end(4), text(4, "b")], reason);
    fails([thinking(4, "a"), end(4), thinking(4, "b")], reason);
    fails([thinking(4, "a"), end(4), signature(4, "b")], reason);
    fails([call(4, "x", "read", "{}"), end(4), call(4, "", "", " ")], reason);
    fails([opaque(4, "{}"), opaque(4, "{}")], reason);
    fails([opaque(4, "{}"), text(4, "")], reason);
}

#[test]
fn a_block_that_ends_unopened_is_a_fault() {
    fails([end(0)], "block 0 ends unopened");
    fails([text(0, "a"), end(1)], "block 1 ends unopened");
}

#[test]
fn a_block_that_changes_its_kind_is_a_fault() {
    let kinds = || [text(0, "a"), thinking(0, "a"), call(0, "x", "read", "")];
    for (first, opened) in kinds().into_iter().enumerate() {
        let others = [
            (text(0, "b"), "block 0 is not text"),
            (thinking(0, "b"), "block 0 is not thinking"),
            (call(0, "y", "grep", ""), "block 0 is not a tool call"),
        ];
        for (second, (piece, reason)) in others.into_iter().enumerate() {
            if first != second {
                fails([opened.clone(), piece], reason);
            }
        }
    }
}

#[test]
fn text_cannot_be_signed() {
    fails([text(0, "a"), signature(0, "s")], "block 0 cannot be signed");
}

#[test]
fn a_fault_leaves_what_was_whole_and_nothing_unfinished() {
    let seen = seen([
        text(0, "hi"),
        call(1, "a", "read", "{}"),
        end(1),
        call(2, "b", "read", r#"{"pa"#),
        end(9),
        text(0, "never read"),
    ]);
    assert_eq!(
        seen.events,
        [
            text_delta("hi"),
            begin("a", "read"),
            delta("a", "{}"),
            crate::ended(whole_call("a", "read", object("{}"))),
            begin("b", "read"),
            delta("b", r#"{"pa"#),
        ]
    );
    assert_eq!(seen.end, Err(protocol("block 9 ends unopened")));
    assert_eq!(
        seen.message,
        message(
            StopReason::Error,
            vec![
                AssistantBlock::text("hi"),
                AssistantBlock::ToolCall(whole_call("a", "read", object("{}"))),
            ]
        )
    );
}

#[test]
fn an_answer_may_have_so_many_blocks_and_not_one_more() {
    let limit = u32::try_from(BLOCKS_MAX).unwrap();
    let most = seen((0..limit).map(|block| text(block, "x")).chain([Piece::Done]));
    assert_eq!((most.end, most.message.content.len()), (Ok(()), BLOCKS_MAX));
    let over = seen((0..=limit).map(|block| text(block, "x")));
    assert_eq!(over.end, Err(protocol("more than 1024 blocks in one answer")));
    assert_eq!(over.message.content.len(), BLOCKS_MAX);
}

#[test]
fn an_answer_may_have_so_many_bytes_and_not_one_more() {
    let quarter = "x".repeat(MESSAGE_BYTES_MAX / 4);
    let full =
        || [text(0, &quarter), thinking(1, &quarter), signature(1, &quarter), text(0, &quarter)];
    assert_eq!(seen(full().into_iter().chain([Piece::Done])).end, Ok(()));
    for straw in
        [text(0, "x"), thinking(1, "x"), signature(1, "x"), call(2, "", "", "x"), opaque(3, "1")]
    {
        let over = seen(full().into_iter().chain([straw]));
        assert_eq!(over.end, Err(protocol("more than 67108864 bytes in one answer")));
    }
}

#[test]
fn a_sealed_block_cannot_take_the_number_of_an_open_one() {
    let reason = "block 0 is not opaque";
    fails([text(0, "a"), opaque(0, "{}")], reason);
    fails([thinking(0, "a"), opaque(0, "{}")], reason);
    fails([call(0, "x", "read", r#"{"path":"/t"#), opaque(0, "{}")], reason);
}

#[test]
fn a_call_is_in_the_message_only_if_its_end_was_an_event() {
    let seen = seen([call(0, "x", "write", r#"{"path":"/t"#), opaque(0, "{}")]);
    assert_eq!(seen.message.tool_calls().count(), 0);
}

#[test]
fn every_byte_the_wire_says_is_counted() {
    let long = "x".repeat(MESSAGE_BYTES_MAX + 1);
    for piece in [call(0, &long, "read", ""), call(0, "a", &long, "")] {
        assert_eq!(
            seen([piece, Piece::Done]).end,
            Err(protocol("more than 67108864 bytes in one answer"))
        );
    }
}
