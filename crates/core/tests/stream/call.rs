//! Tool calls out of pieces.

use antiphon_core::{
    AssistantBlock, Piece, Signature, StopReason, StreamEvent, ToolArguments, ToolCallBlock,
};
use uuid::Uuid;

use crate::{
    begin, call, delta, end, ended, id, malformed, message, object, protocol, seen, signature,
    stop, text, text_delta, whole_call,
};

/// The id a call gets in this answer when the wire has none for it.
fn made(block: u32) -> String {
    Uuid::from_u128(u128::from(block)).to_string()
}

/// Asserts that the pieces make exactly these calls, each ended once, in this order.
#[track_caller]
fn calls(pieces: impl IntoIterator<Item = Piece>, expected: &[ToolCallBlock]) {
    let seen = seen(pieces.into_iter().chain([Piece::Done]));
    let ends: Vec<&ToolCallBlock> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::ToolCallEnd { call } => Some(call),
            StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ToolCallBegin { .. }
            | StreamEvent::ToolCallDelta { .. } => None,
        })
        .collect();
    assert_eq!(seen.end, Ok(()));
    assert_eq!(seen.message.tool_calls().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    let mut ended: Vec<String> = ends.iter().map(|call| call.id.to_string()).collect();
    let mut all: Vec<String> = expected.iter().map(|call| call.id.to_string()).collect();
    ended.sort();
    all.sort();
    assert_eq!(ended, all);
}

#[test]
fn interleaved_calls_are_told_apart_by_their_blocks() {
    let seen = seen([
        text(0, "Let me see."),
        call(1, "a", "read", ""),
        call(2, "b", "grep", r#"{"q""#),
        call(1, "", "", r#"{"path":"#),
        call(2, "", "", r#":"x"}"#),
        end(2),
        call(1, "", "", r#""y"}"#),
        end(1),
        stop(StopReason::ToolUse, "tool_use"),
        Piece::Done,
    ]);
    let a = whole_call("a", "read", object(r#"{"path":"y"}"#));
    let b = whole_call("b", "grep", object(r#"{"q":"x"}"#));
    assert_eq!(
        seen.events,
        [
            text_delta("Let me see."),
            begin("a", "read"),
            begin("b", "grep"),
            delta("b", r#"{"q""#),
            delta("a", r#"{"path":"#),
            delta("b", r#":"x"}"#),
            ended(b.clone()),
            delta("a", r#""y"}"#),
            ended(a.clone()),
        ]
    );
    let mut whole = message(
        StopReason::ToolUse,
        vec![
            AssistantBlock::text("Let me see."),
            AssistantBlock::ToolCall(a),
            AssistantBlock::ToolCall(b),
        ],
    );
    whole.raw_stop_reason = "tool_use".to_owned();
    assert_eq!((seen.end, seen.message), (Ok(()), whole));
}

#[test]
fn a_call_begins_when_its_name_is_known_with_all_there_is_of_its_arguments() {
    let seen = seen([
        call(0, "", "", r#"{"a""#),
        call(0, "x", "", ":1"),
        call(0, "", "read", "}"),
        end(0),
        Piece::Done,
    ]);
    assert_eq!(
        seen.events,
        [
            begin("x", "read"),
            delta("x", r#"{"a":1}"#),
            ended(whole_call("x", "read", object(r#"{"a":1}"#))),
        ]
    );
}

#[test]
fn an_id_or_a_name_said_each_time_is_not_added_up() {
    calls(
        [call(0, "x", "read", "{"), call(0, "x", "read", "}"), call(0, "y", "write", "")],
        &[whole_call("x", "read", object("{}"))],
    );
}

#[test]
fn the_first_id_and_name_that_are_not_empty_count() {
    let blank = |block| Piece::ToolCall {
        block,
        id: Some(String::new()),
        name: Some(String::new()),
        arguments: String::new(),
    };
    calls([blank(0), call(0, "x", "read", ""), blank(0)], &[whole_call("x", "read", object("{}"))]);
}

#[test]
fn an_id_that_comes_after_the_call_was_shown_is_too_late() {
    calls(
        [call(0, "", "read", ""), call(0, "x", "", "{}")],
        &[whole_call(&made(0), "read", object("{}"))],
    );
}

#[test]
fn an_id_that_another_call_of_the_answer_has_is_replaced() {
    calls(
        [call(0, "x", "read", "{}"), call(1, "x", "read", "{}"), call(7, "x", "grep", "{}")],
        &[
            whole_call("x", "read", object("{}")),
            whole_call(&made(1), "read", object("{}")),
            whole_call(&made(7), "grep", object("{}")),
        ],
    );
}

#[test]
fn a_missing_or_unusable_id_is_replaced_and_a_replay_replaces_it_alike() {
    let long = "x".repeat(257);
    for bad in ["", " ", "a b", "a\n", long.as_str()] {
        let pieces = || [call(3, bad, "read", "{}")];
        calls(pieces(), &[whole_call(&made(3), "read", object("{}"))]);
        assert_eq!(seen(pieces()), seen(pieces()));
    }
}

#[test]
fn arguments_are_kept_as_they_were_written() {
    let deep = "[".repeat(200) + &"]".repeat(200);
    let deep = format!(r#"{{"a":{deep}}}"#);
    for (written, expected) in [
        ("", object("{}")),
        ("  ", object("{}")),
        (r#"{"b":1.0,"a":[ ]}"#, object(r#"{"b":1.0,"a":[ ]}"#)),
        ("\n{}\n", object("{}")),
        (r#"{"path":"/tm"#, malformed(r#"{"path":"/tm"#)),
        ("[1]", malformed("[1]")),
        ("null", malformed("null")),
        ("{}{}", malformed("{}{}")),
        (deep.as_str(), malformed(&deep)),
    ] {
        calls([call(0, "x", "read", written)], &[whole_call("x", "read", expected)]);
    }
}

#[test]
fn arguments_cut_off_by_a_token_limit_are_malformed_and_the_reason_stays() {
    let seen = seen([
        call(0, "x", "write", r#"{"text":"lo"#),
        stop(StopReason::Length, "max_tokens"),
        Piece::Done,
    ]);
    let cut = whole_call("x", "write", ToolArguments::Malformed(r#"{"text":"lo"#.to_owned()));
    let mut whole = message(StopReason::Length, vec![AssistantBlock::ToolCall(cut)]);
    whole.raw_stop_reason = "max_tokens".to_owned();
    assert_eq!((seen.end, seen.message), (Ok(()), whole));
}

#[test]
fn a_call_may_be_signed_at_any_time_before_its_end() {
    let signed = |arguments| ToolCallBlock {
        signature: Some(Signature("c2ln".to_owned())),
        ..whole_call("x", "read", arguments)
    };
    calls(
        [
            call(0, "x", "read", "{"),
            signature(0, "c2"),
            call(0, "", "", "}"),
            signature(0, "ln"),
            end(0),
        ],
        &[signed(object("{}"))],
    );
    calls(
        [call(0, "", "", ""), signature(0, "c2ln"), call(0, "x", "read", "")],
        &[signed(object("{}"))],
    );
}

#[test]
fn calls_that_the_wire_does_not_end_are_ended_by_the_end_of_the_answer() {
    let seen = seen([call(0, "a", "read", "{}"), call(1, "b", "read", "{}"), end(1), Piece::Done]);
    let (a, b) = (whole_call("a", "read", object("{}")), whole_call("b", "read", object("{}")));
    assert_eq!(seen.events[4..], [ended(b), ended(a)]);
}

#[test]
fn a_call_without_a_name_is_a_fault() {
    for last in [end(0), Piece::Done] {
        let seen = seen([call(0, "x", "", "{}"), last]);
        assert_eq!(seen.events, []);
        assert_eq!(seen.end, Err(protocol("block 0 calls no tool")));
        assert_eq!(seen.message, message(StopReason::Error, vec![]));
    }
}

#[test]
fn an_id_that_is_made_is_unique_too() {
    let taken = made(1);
    let seen = seen([call(0, &taken, "read", "{}"), call(1, "", "read", "{}"), Piece::Done]);
    let ids: Vec<_> = seen.message.tool_calls().map(|call| call.id.clone()).collect();
    assert_eq!(ids[0], id(&taken));
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_call_that_was_cut_off_before_its_arguments_is_not_one_without() {
    let limited = || stop(StopReason::Length, "length");
    calls([call(0, "x", "list", ""), limited()], &[whole_call("x", "list", malformed(""))]);
    // Another one came behind it: it was whole.
    calls(
        [call(0, "x", "list", ""), call(1, "y", "read", "{}"), limited()],
        &[whole_call("x", "list", object("{}")), whole_call("y", "read", object("{}"))],
    );
}
