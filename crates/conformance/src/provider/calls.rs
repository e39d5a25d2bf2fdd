//! Tool calls, assembled from their pieces.

use std::collections::HashSet;

use antiphon_core::{AssistantMessage, ToolArguments, ToolCallBlock};

use super::reader::{read, read_whole};
use super::{Ending, Scenario, Step, StopWord, Wire};
use crate::suite::{Outcome, ensure, equal};

/// Arguments whose bytes carry more than their value.
const ODD_ARGUMENTS: &str = r#"{"z":1.0,"a":1e2,"n":123456789012345678901234567890,"u":"\u00e9\ud83d\ude00\/","a":-0,"deep":[[{}]]}"#;

pub(super) async fn a_call_begins_grows_and_ends(wire: &dyn Wire) -> Outcome {
    let arguments = r#"{"city":"Paris","days":3}"#;
    let mut steps = vec![Step::text(0, "Let me see."), Step::BlockEnd { block: 0 }];
    steps.extend(call_in_pieces(1, "call_1", "look", arguments));
    steps.push(Step::Stop(StopWord::ToolUse));
    let (transcript, message) = read_whole(wire, steps).await?;
    let calls: Vec<&ToolCallBlock> = message.tool_calls().collect();
    equal("the calls", &described(&message), &expected_calls(&[("look", arguments)]))?;
    transcript.reports(&calls, &[arguments])
}

pub(super) async fn parallel_calls_keep_their_order(wire: &dyn Wire) -> Outcome {
    let calls = [("look", r#"{"n":1}"#), ("ask", r#"{"n":2}"#), ("look", r#"{"n":3}"#)];
    let steps = (0..).zip(["call_c", "call_a", "call_b"]).zip(calls);
    let (_, message) = read_whole(
        wire,
        steps
            .flat_map(|((block, id), (name, arguments))| Step::call(block, id, name, arguments))
            .chain([Step::Stop(StopWord::ToolUse)]),
    )
    .await?;
    equal("the calls", &described(&message), &expected_calls(&calls))
}

pub(super) async fn no_arguments_are_an_empty_object(wire: &dyn Wire) -> Outcome {
    let steps =
        [begin(0, "call_1", "look"), Step::BlockEnd { block: 0 }, Step::Stop(StopWord::ToolUse)];
    let (_, message) = read_whole(wire, steps).await?;
    equal("the calls", &described(&message), &expected_calls(&[("look", "{}")]))
}

pub(super) async fn the_bytes_of_arguments_survive(wire: &dyn Wire) -> Outcome {
    let mut steps = Step::call(0, "call_1", "look", ODD_ARGUMENTS);
    steps.push(Step::Stop(StopWord::ToolUse));
    let (_, message) = read_whole(wire, steps).await?;
    let expected = expected_calls(&[("look", ODD_ARGUMENTS)]);
    equal("the calls", &described(&message), &expected)
}

/// A wire that reports the end of a block may keep the finished call; no wire may keep the other.
pub(super) async fn a_partial_message_never_holds_an_unfinished_call(wire: &dyn Wire) -> Outcome {
    let mut steps = Step::call(0, "call_1", "look", r#"{"n":1}"#);
    steps.push(begin(1, "call_2", "ask"));
    steps.push(delta(1, r#"{"n":"#));
    let (transcript, message) = read(wire, Scenario::ending(Ending::Cut, steps)).await?;
    ensure!(transcript.error.is_some(), "an answer that was cut ended well");
    let finished = expected_calls(&[("look", r#"{"n":1}"#)]);
    for call in described(&message) {
        ensure!(finished.contains(&call), "a call is in the message that was cut off: {call:?}");
    }
    Ok(())
}

pub(super) async fn interleaved_calls_are_separated(wire: &dyn Wire) -> Outcome {
    let steps = [
        begin(0, "call_a", "look"),
        begin(1, "call_b", "ask"),
        delta(0, r#"{"from""#),
        delta(1, r#"{"who":"#),
        delta(0, r#":"a"}"#),
        delta(1, r#""b"}"#),
        Step::BlockEnd { block: 1 },
        Step::BlockEnd { block: 0 },
        Step::Stop(StopWord::ToolUse),
    ];
    let (transcript, message) = read_whole(wire, steps).await?;
    let (a, b) = (r#"{"from":"a"}"#, r#"{"who":"b"}"#);
    let expected = expected_calls(&[("look", a), ("ask", b)]);
    equal("the calls", &described(&message), &expected)?;
    let calls: Vec<&ToolCallBlock> = message.tool_calls().collect();
    transcript.reports(&calls, &[a, b])
}

pub(super) async fn truncated_arguments_are_malformed(wire: &dyn Wire) -> Outcome {
    let cut = r#"{"city":"Par"#;
    let mut steps = Step::call(0, "call_1", "look", cut);
    steps.push(Step::Stop(StopWord::Length));
    let (_, message) = read_whole(wire, steps).await?;
    let arguments: Vec<_> = message.tool_calls().map(|call| &call.arguments).collect();
    let expected = ToolArguments::Malformed(cut.to_owned());
    equal("the arguments", &arguments, &vec![&expected])
}

pub(super) async fn the_id_of_a_call_survives(wire: &dyn Wire) -> Outcome {
    let mut steps = Step::call(0, "toolu_01A-b_C", "look", "{}");
    steps.push(Step::Stop(StopWord::ToolUse));
    let (_, message) = read_whole(wire, steps).await?;
    let ids: Vec<_> = message.tool_calls().map(|call| call.id.as_str()).collect();
    equal("the ids", &ids, &vec!["toolu_01A-b_C"])
}

pub(super) async fn a_repeated_id_is_made_unique(wire: &dyn Wire) -> Outcome {
    let mut steps = Step::call(0, "call_1", "look", r#"{"n":1}"#);
    steps.extend(Step::call(1, "call_1", "look", r#"{"n":2}"#));
    steps.push(Step::Stop(StopWord::ToolUse));
    let (_, message) = read_whole(wire, steps).await?;
    let ids: HashSet<_> = message.tool_calls().map(|call| &call.id).collect();
    equal("different ids", &ids.len(), &2)
}

fn begin(block: u32, id: &str, name: &str) -> Step {
    Step::CallBegin { block, id: id.to_owned(), name: name.to_owned() }
}

fn delta(block: u32, delta: &str) -> Step {
    Step::CallDelta { block, delta: delta.to_owned() }
}

/// A call whose arguments arrive in pieces of three bytes.
fn call_in_pieces(block: u32, id: &str, name: &str, arguments: &str) -> Vec<Step> {
    let pieces = arguments.as_bytes().chunks(3);
    let mut steps = vec![begin(block, id, name)];
    steps.extend(pieces.map(|piece| delta(block, &String::from_utf8_lossy(piece))));
    steps.push(Step::BlockEnd { block });
    steps
}

/// The calls of a message, without their ids: not every wire has ids.
fn described(message: &AssistantMessage) -> Vec<(String, Result<String, String>)> {
    let describe = |call: &ToolCallBlock| match &call.arguments {
        ToolArguments::Object(json) => (call.name.clone(), Ok(json.as_str().to_owned())),
        ToolArguments::Malformed(text) => (call.name.clone(), Err(text.clone())),
    };
    message.tool_calls().map(describe).collect()
}

fn expected_calls(calls: &[(&str, &str)]) -> Vec<(String, Result<String, String>)> {
    let describe =
        |(name, arguments): &(&str, &str)| ((*name).to_owned(), Ok((*arguments).to_owned()));
    calls.iter().map(describe).collect()
}
