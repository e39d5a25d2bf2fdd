//! What of a history may be sent to a model.

use std::sync::Arc;

use antiphon_core::{
    AssistantBlock, AssistantMessage, InputBlock, Message, RawJson, StopReason, ThinkingBlock,
    ToolArguments, ToolCallBlock, ToolCallId, ToolResultMessage, Usage, UserMessage, sendable,
};

use crate::ten;

fn asked(text: &str) -> Arc<Message> {
    UserMessage::text(text, ten()).into()
}

fn call(id: &str) -> AssistantBlock {
    AssistantBlock::ToolCall(ToolCallBlock {
        id: ToolCallId::parse(id).unwrap(),
        name: "read".to_owned(),
        arguments: ToolArguments::Object(RawJson::empty_object()),
        signature: None,
    })
}

fn answered(stop_reason: StopReason, content: Vec<AssistantBlock>) -> Arc<Message> {
    AssistantMessage {
        content,
        stop_reason,
        raw_stop_reason: String::new(),
        usage: Usage::default(),
        model: None,
        timestamp: ten(),
    }
    .into()
}

fn called(ids: &[&str]) -> Arc<Message> {
    answered(StopReason::ToolUse, ids.iter().map(|id| call(id)).collect())
}

fn result(id: &str, text: &str) -> Arc<Message> {
    ToolResultMessage {
        tool_call_id: ToolCallId::parse(id).unwrap(),
        tool_name: "read".to_owned(),
        content: vec![InputBlock::text(text)],
        is_error: false,
        timestamp: ten(),
    }
    .into()
}

/// Asserts what is sent of `history`, and that sending it again changes nothing.
#[track_caller]
fn sends(history: &[Arc<Message>], expected: &[Arc<Message>]) {
    assert_eq!(sendable(history), expected);
    assert_eq!(sendable(expected), expected);
}

#[test]
fn a_whole_history_is_sent_unchanged() {
    let history = [
        asked("go"),
        called(&["a", "b"]),
        result("a", "1"),
        result("b", "2"),
        answered(StopReason::EndTurn, vec![AssistantBlock::text("done")]),
        asked("more"),
        answered(StopReason::Length, vec![AssistantBlock::text("cut")]),
        answered(StopReason::Unknown, vec![AssistantBlock::text("odd")]),
    ];
    sends(&history, &history);
    sends(&[], &[]);
    assert!(std::iter::zip(&history, sendable(&history)).all(|(a, b)| Arc::ptr_eq(a, &b)));
}

#[test]
fn an_answer_that_broke_off_is_left_out_with_its_results() {
    for reason in [StopReason::Error, StopReason::Aborted] {
        let broken = answered(reason, vec![AssistantBlock::text("half"), call("a")]);
        sends(
            &[asked("go"), broken, result("a", "1"), asked("again")],
            &[asked("go"), asked("again")],
        );
    }
}

#[test]
fn the_text_of_an_interrupted_answer_is_offered_as_such_with_the_message_behind_it() {
    let text = AssistantBlock::text("half of it");
    let thinking =
        AssistantBlock::Thinking(ThinkingBlock { thinking: "hm".to_owned(), signature: None });
    let blank = AssistantBlock::text(" ");
    let broken =
        |reason| answered(reason, vec![thinking.clone(), text.clone(), call("a"), blank.clone()]);
    let note = "[Your answer above was interrupted here, before its end.]";
    let told = UserMessage {
        content: vec![InputBlock::text(note), InputBlock::text("go on")],
        timestamp: asked("").timestamp(),
    };
    let offered = [asked("go"), answered(StopReason::EndTurn, vec![text.clone()]), told.into()];
    sends(&[asked("go"), broken(StopReason::Aborted), asked("go on")], &offered);
    // One that broke off by itself was asked for again.
    sends(
        &[asked("go"), broken(StopReason::Error), asked("go on")],
        &[asked("go"), asked("go on")],
    );
    // Without a message behind it there is nothing to go on with.
    sends(&[asked("go"), broken(StopReason::Aborted)], &[asked("go")]);
    let other = answered(StopReason::EndTurn, vec![AssistantBlock::text("all")]);
    let history = [asked("go"), broken(StopReason::Aborted), Arc::clone(&other), asked("more")];
    sends(&history, &[asked("go"), other, asked("more")]);
}

#[test]
fn a_call_without_a_result_is_left_out_and_the_rest_of_its_answer_stays() {
    let mixed = answered(
        StopReason::ToolUse,
        vec![AssistantBlock::text("let me look"), call("a"), call("b")],
    );
    let mended =
        answered(StopReason::ToolUse, vec![AssistantBlock::text("let me look"), call("b")]);
    sends(&[mixed, result("b", "2")], &[mended, result("b", "2")]);
    sends(&[asked("go"), called(&["a"])], &[asked("go")]);
}

#[test]
fn results_follow_their_answer_directly_in_the_order_of_the_calls() {
    sends(
        &[called(&["a", "b"]), result("b", "2"), asked("by the way"), result("a", "1")],
        &[called(&["a", "b"]), result("a", "1"), result("b", "2"), asked("by the way")],
    );
}

#[test]
fn a_result_without_a_call_before_it_is_left_out() {
    sends(&[result("a", "1"), asked("go")], &[asked("go")]);
    sends(&[result("a", "1"), called(&["a"])], &[]);
    sends(
        &[called(&["a"]), asked("x"), called(&["b"]), result("a", "1"), result("b", "2")],
        &[asked("x"), called(&["b"]), result("b", "2")],
    );
}

#[test]
fn a_second_result_or_a_second_call_of_the_same_id_is_left_out() {
    sends(
        &[called(&["a"]), result("a", "1"), result("a", "2")],
        &[called(&["a"]), result("a", "1")],
    );
    sends(
        &[called(&["a", "a"]), result("a", "1"), result("a", "2")],
        &[called(&["a"]), result("a", "1")],
    );
}

#[test]
fn the_same_id_in_two_answers_is_two_calls() {
    let history = [called(&["a"]), result("a", "1"), called(&["a"]), result("a", "2")];
    sends(&history, &history);
}

#[test]
fn only_what_changes_is_copied() {
    let blank = answered(StopReason::EndTurn, vec![AssistantBlock::text("hm"), call("a")]);
    let history = [asked("go"), blank, called(&["b"]), result("b", " "), asked("more")];
    let sent = sendable(&history);
    let shared = |at: usize| sent.iter().any(|message| Arc::ptr_eq(message, &history[at]));
    assert_eq!([0, 1, 2, 3, 4].map(shared), [true, false, true, false, true]);
}

#[test]
fn blank_text_is_left_out_and_a_result_is_never_empty() {
    let said = |texts: &[&str]| -> Arc<Message> {
        let content = texts.iter().map(|text| InputBlock::text(*text)).collect();
        UserMessage { content, timestamp: ten() }.into()
    };
    let spoken = |texts: &[&str]| {
        answered(
            StopReason::EndTurn,
            texts.iter().map(|text| AssistantBlock::text(*text)).collect(),
        )
    };
    sends(
        &[said(&[" ", "go", "\n"]), said(&["\t"]), spoken(&["", "done"]), spoken(&[" "])],
        &[said(&["go"]), spoken(&["done"])],
    );
    for nothing in ["", " \n"] {
        sends(
            &[called(&["a"]), result("a", nothing)],
            &[called(&["a"]), result("a", "(no output)")],
        );
    }
}

#[test]
fn an_empty_message_is_left_out() {
    let empty = UserMessage { content: vec![], timestamp: ten() };
    sends(&[empty.into(), answered(StopReason::EndTurn, vec![]), asked("go")], &[asked("go")]);
}
