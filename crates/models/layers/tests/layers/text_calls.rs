//! What becomes a call and what stays text. Splitting into deltas is tested in `text_calls_cut`.

use antiphon_core::{
    AssistantBlock, Cancel, Piece, Provider, ProviderError, RawJson, Request, StopReason,
    ToolArguments, ToolChoice,
};
use antiphon_layers::TextCalls;
use futures_util::FutureExt;

use crate::piece::{answer, call, end, model, opaque, stop, text, thinking, usage};
use crate::test_provider::{Action, TestProvider, say};
use crate::world::{Read, message, offering, read, request, scripted};

/// Longest block that is held back, as in the layer.
pub(crate) const HELD_BYTES_MAX: usize = 256 * 1024;

/// All text of the output, and the calls.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) calls: Vec<(String, String)>,
}

impl Outcome {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), calls: Vec::new() }
    }

    pub(crate) fn of(text: &str, calls: &[(&str, &str)]) -> Self {
        let calls = calls.iter().map(|(name, arguments)| ((*name).into(), (*arguments).into()));
        Self { text: text.to_owned(), calls: calls.collect() }
    }
}

/// The output for an answer of these deltas, with `bash` and `read` offered.
pub(crate) fn outcome<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Outcome {
    let deltas = deltas.into_iter().map(|delta| text(0, delta));
    let pieces: Vec<Piece> = deltas.chain([end(0), Piece::Done]).collect();
    let source = TextCalls::new(TestProvider::sending(pieces)).open(offering(&["bash", "read"]));
    let read = read(source).now_or_never().expect("nothing waits");
    assert_eq!(read.failure, None);
    let mut outcome = Outcome::text("");
    for piece in read.pieces {
        match piece {
            Piece::Text { delta, .. } => outcome.text.push_str(&delta),
            Piece::ToolCall { name, arguments, .. } => {
                outcome.calls.push((name.expect("a name"), arguments));
            }
            Piece::BlockEnd { .. } | Piece::Alive | Piece::Done => {}
            Piece::Model(_)
            | Piece::Thinking { .. }
            | Piece::Signature { .. }
            | Piece::Opaque { .. }
            | Piece::Usage(_)
            | Piece::Stop(_) => unreachable!("unexpected piece {piece:?}"),
        }
    }
    outcome
}

/// The layer's output for these pieces.
async fn reading(request: Request, acts: Vec<Action>) -> Read {
    read(TextCalls::new(TestProvider::in_turn(vec![acts])).open(request)).await
}

fn bash() -> Request {
    offering(&["bash"])
}

const CALL: &str = r#"{"name": "bash", "arguments": {"command": "ls"}}"#;
const LS: (&str, &str) = ("bash", r#"{"command": "ls"}"#);

#[test]
fn a_call_may_be_in_a_tag_in_a_fence_or_the_whole_answer() {
    for written in [
        format!("<tool_call>{CALL}</tool_call>"),
        format!("<tool_call>\n{CALL}\n</tool_call>"),
        format!("<function_call>{CALL}</function_call>"),
        format!("```json\n{CALL}\n```"),
        format!("```tool_call\n{CALL}\n```"),
        format!("```\n{CALL}\n```"),
        format!("```{CALL}```"),
        format!("```json {CALL}```"),
        CALL.to_owned(),
        format!("[{CALL}]"),
    ] {
        assert_eq!(outcome([written.as_str()]), Outcome::of("", &[LS]), "{written}");
    }
    // White space around the whole answer is part of it.
    assert_eq!(outcome([format!(" \n{CALL}\n ").as_str()]), Outcome::of("", &[LS]));
}

#[test]
fn name_and_arguments_have_several_spellings() {
    for written in [
        r#"{"name": "bash", "arguments": {"command": "ls"}}"#,
        r#"{"tool": "bash", "arguments": {"command": "ls"}}"#,
        r#"{"name": "bash", "parameters": {"command": "ls"}}"#,
        r#"{"name": "bash", "input": {"command": "ls"}}"#,
        r#"{"name": "bash", "args": {"command": "ls"}}"#,
        r#"{"args": {"command": "ls"}, "id": 7, "name": "bash"}"#,
        r#"{"type": "function", "function": {"name": "bash", "arguments": {"command": "ls"}}}"#,
        r#"{"function": {"tool": "bash", "args": {"command": "ls"}}}"#,
    ] {
        assert_eq!(outcome([written]), Outcome::of("", &[LS]), "{written}");
    }
}

#[test]
fn arguments_are_kept_byte_for_byte() {
    let odd =
        r#"{ "n": 1.0,"big":123456789012345678901234567890,  "n": 2, "z": 1, "a": "\u00e9" }"#;
    let written = format!(r#"{{"name": "bash", "arguments": {odd}}}"#);
    assert_eq!(outcome([written.as_str()]), Outcome::of("", &[("bash", odd)]));
}

#[test]
fn arguments_encoded_as_a_string_are_decoded() {
    let written = r#"{"name": "bash", "arguments": "{\"command\": \"ls\"}"}"#;
    assert_eq!(outcome([written]), Outcome::of("", &[LS]));
}

#[test]
fn missing_arguments_are_an_empty_object() {
    for written in [r#"{"name": "bash"}"#, r#"{"name": "bash", "arguments": null}"#] {
        assert_eq!(outcome([written]), Outcome::of("", &[("bash", "{}")]));
    }
}

#[test]
fn arguments_that_are_not_an_object_are_passed_on() {
    let written = r#"{"name": "bash", "arguments": ["ls", 1]}"#;
    assert_eq!(outcome([written]), Outcome::of("", &[("bash", r#"["ls", 1]"#)]));
}

#[test]
fn several_calls_come_in_order() {
    let read = r#"{"name":"read","args":{"path":"a"}}"#;
    let both = [LS, ("read", r#"{"path":"a"}"#)];
    let list = format!("```json\n[{CALL}, {read}]\n```");
    assert_eq!(outcome([list.as_str()]), Outcome::of("", &both));
    let tags = format!("<tool_call>{CALL}</tool_call><tool_call>{read}</tool_call>");
    assert_eq!(outcome([tags.as_str()]), Outcome::of("", &both));
    let mixed = format!("a ```{CALL}``` b <tool_call>{read}</tool_call> c");
    assert_eq!(outcome([mixed.as_str()]), Outcome::of("a  b  c", &both));
}

#[test]
fn a_call_in_the_middle_of_text_is_removed_from_it() {
    for before in ["I will look.\n", "[1] says so: ", "{braces} ", "{\"a\": 1} is JSON. ", " \n"] {
        let written = format!("{before}```json\n{CALL}\n```\nWait.");
        let expected = Outcome::of(&format!("{before}\nWait."), &[LS]);
        assert_eq!(outcome([written.as_str()]), expected, "{before}");
    }
}

#[test]
fn a_call_of_a_tool_that_is_not_offered_stays_text() {
    for written in [
        r#"<tool_call>{"name": "rm", "arguments": {}}</tool_call>"#,
        "```json\n{\"name\": \"rm\"}\n```",
        r#"{"name": "rm", "arguments": {}}"#,
        r#"{"name": "Bash", "arguments": {}}"#,
        // A list with one invalid call is no call.
        r#"[{"name": "bash"}, {"name": "rm"}]"#,
    ] {
        assert_eq!(outcome([written]), Outcome::text(written));
    }
}

#[test]
fn blocks_that_are_not_calls_stay_text_byte_for_byte() {
    for written in [
        "```rust\nfn main() { println!(\"{}\", 1); }\n```",
        "```json\n{\"a\": 1}\n```",
        "```json\n{\"name\": 1}\n```",
        "```json\n[]\n```",
        "```json\n[\"bash\"]\n```",
        "```json\n[[\"bash\", {}]]\n```",
        "```\n\n```",
        "``````",
        "````\n```\n````",
        "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": 'ls'}}\n```",
        "```json\n{\"name\": \"bash\",\n```\n\"arguments\": {}}",
        "```json\n{\"name\": \"bash\"} and more\n```",
        "<tool_call>nothing</tool_call>",
        "<tool_call></tool_call>",
        "a < b, `code`, ``more``, <tool, <tool_called>, <function",
        "{\"name\": \"bash\"} is how to call it",
        "bash {\"name\": \"bash\"}",
        "{\"name\": \"bash\"}{\"name\": \"bash\"}",
        "Ünïcödé ``` é ``` <tool_call>é</tool_call> `",
        "",
        " \n\t ",
        "{",
        "[",
        "`",
        "<",
    ] {
        assert_eq!(outcome([written]), Outcome::text(written), "{written}");
    }
}

#[test]
fn a_closing_delimiter_inside_of_a_string_does_not_count() {
    for (open, close) in [("```json\n", "\n```"), ("<tool_call>", "</tool_call>")] {
        let arguments = r#"{"content": "```rust\nfn a() {}\n``` \" </tool_call> ```"}"#;
        let written = format!("{open}{{\"name\": \"bash\", \"input\": {arguments}}}{close} b");
        assert_eq!(outcome([written.as_str()]), Outcome::of(" b", &[("bash", arguments)]));
    }
}

#[test]
fn an_unclosed_quote_does_not_swallow_what_follows() {
    let broken = "```{\"name\": \"bash``` and ";
    let written = format!("{broken}<tool_call>{CALL}</tool_call>");
    assert_eq!(outcome([written.as_str()]), Outcome::of(broken, &[LS]));
    let broken = "```json\n{\"name\": \"bash\n``` and ";
    let written = format!("{broken}<tool_call>{CALL}</tool_call>");
    assert_eq!(outcome([written.as_str()]), Outcome::of(broken, &[LS]));
}

#[test]
fn the_last_closing_delimiter_may_be_missing_or_incomplete() {
    for (open, rests) in
        [("```json\n", ["", "\n", "\n``"]), ("<tool_call>", ["", "\n", "</tool_c"])]
    {
        for rest in rests {
            let written = format!("So: {open}{CALL}{rest}");
            assert_eq!(outcome([written.as_str()]), Outcome::of("So: ", &[LS]), "{written}");
        }
    }
    for written in ["```rust\nfn main() {}", "```json\n{\"name\": \"ba", "<tool_call>", "a ```"] {
        assert_eq!(outcome([written]), Outcome::text(written));
    }
}

#[test]
fn a_block_too_long_to_hold_back_is_text_and_scanning_continues() {
    let filler = "x".repeat(HELD_BYTES_MAX);
    let long = format!(r#"{{"name": "bash", "arguments": {{"command": "{filler}"}}}}"#);
    for written in [format!("```json\n{long}\n```"), format!("<tool_call>{long}</tool_call>")] {
        let followed = format!("{written} then <tool_call>{CALL}</tool_call>");
        assert_eq!(outcome([followed.as_str()]), Outcome::of(&format!("{written} then "), &[LS]));
        // In deltas as from a wire.
        let deltas: Vec<String> =
            followed.as_bytes().chunks(1000).map(|c| String::from_utf8_lossy(c).into()).collect();
        let cut = outcome(deltas.iter().map(String::as_str));
        assert_eq!(cut, Outcome::of(&format!("{written} then "), &[LS]));
    }
    assert_eq!(outcome([long.as_str()]), Outcome::text(&long));
}

#[test]
fn the_longest_block_is_still_a_call() {
    let call = |filler: usize| {
        let filler = "x".repeat(filler);
        format!(r#"```{{"name":"bash","input":"{filler}"}}```"#)
    };
    let room = HELD_BYTES_MAX - call(0).len();
    assert_eq!(outcome([call(room).as_str()]).calls.len(), 1);
    assert_eq!(outcome([call(room + 1).as_str()]), Outcome::text(&call(room + 1)));
}

#[tokio::test]
async fn text_passes_at_once_and_a_fence_is_held_back_until_it_closes() {
    let deltas = ["One ", "two `", "x` [", "``", "`json\n", CALL, "\n``", "` three"];
    let acts = deltas.iter().map(|delta| Action::Send(text(0, delta))).collect();
    let expected = vec![
        text(0, "One "),
        text(0, "two "),
        text(0, "`x` ["),
        // Held-back text counts as activity.
        Piece::Alive,
        Piece::Alive,
        Piece::Alive,
        Piece::Alive,
        call(1 << 20, "bash", LS.1),
        end(1 << 20),
        text(0, " three"),
    ];
    assert_eq!(reading(bash(), acts).await, Read::whole(expected));
}

#[tokio::test]
async fn without_tools_or_with_calls_forbidden_nothing_is_changed() {
    let written = vec![text(0, &format!("<tool_call>{CALL}</tool_call>")), Piece::Done];
    let forbidden = Request { tool_choice: ToolChoice::None, ..bash() };
    for request in [request("no tools"), forbidden] {
        assert_eq!(reading(request, say(written.clone())).await, Read::whole(written.clone()));
    }
    for choice in [ToolChoice::Required, ToolChoice::Named("bash".to_owned())] {
        let wanted = Request { tool_choice: choice, ..bash() };
        let expected = vec![call(1 << 20, "bash", LS.1), end(1 << 20), Piece::Done];
        assert_eq!(reading(wanted, say(written.clone())).await, Read::whole(expected));
    }
}

#[tokio::test]
async fn blocks_that_are_not_text_pass_unchanged() {
    let pieces = vec![
        model("a/b"),
        usage(1),
        thinking(0, "```json"),
        end(0),
        call(1, "bash", "{}"),
        end(1),
        opaque(2),
        text(3, "Hello"),
        end(3),
        Piece::Alive,
        stop(StopReason::EndTurn, "end"),
        Piece::Done,
    ];
    assert_eq!(reading(bash(), say(pieces.clone())).await, Read::whole(pieces));
}

#[tokio::test]
async fn held_back_text_stays_before_later_blocks() {
    let acts = say(vec![text(0, "``"), opaque(1), text(0, "x"), end(0), Piece::Done]);
    let expected = vec![Piece::Alive, text(0, ""), opaque(1), text(0, "``x"), end(0), Piece::Done];
    assert_eq!(reading(bash(), acts).await, Read::whole(expected));
}

#[tokio::test]
async fn each_text_block_is_scanned_separately() {
    // The first stays open; the second is a whole answer, although it is not the first.
    let acts = say(vec![text(0, "``"), text(1, CALL), end(1), end(0), Piece::Done]);
    let expected = vec![
        Piece::Alive,
        text(0, "``"),
        call(1 << 20, "bash", LS.1),
        end(1 << 20),
        end(0),
        Piece::Done,
    ];
    assert_eq!(reading(bash(), acts).await, Read::whole(expected));
    let acts = say(vec![text(0, CALL), text(1, "b"), end(0), end(1), Piece::Done]);
    let (message, failure) =
        message(&TextCalls::new(TestProvider::in_turn(vec![acts])), bash(), Cancel::never()).await;
    assert_eq!((failure, message.text(), message.tool_calls().count()), (None, "b".to_owned(), 1));
}

#[tokio::test]
async fn an_interrupted_answer_shows_held_back_text() {
    let held = format!("```json\n{CALL}");
    for failure in [Some(ProviderError::Cut), None] {
        let fate = failure.clone().map(Action::Fail);
        let acts = [Some(Action::Send(text(0, &format!("So: {held}")))), fate];
        let pieces = vec![text(0, "So: "), text(0, &held)];
        let read = reading(bash(), acts.into_iter().flatten().collect()).await;
        assert_eq!(read, Read { pieces, failure });
    }
}

#[tokio::test]
async fn an_answer_interrupted_before_anything_was_shown_can_be_retried() {
    let acts = vec![Action::Send(text(0, CALL)), Action::Fail(ProviderError::Cut)];
    let expected = Read { pieces: vec![Piece::Alive], failure: Some(ProviderError::Cut) };
    assert_eq!(reading(bash(), acts).await, expected);
}

#[tokio::test]
async fn in_a_message_stream_the_model_stops_for_its_calls() {
    let script = format!("[[reply]]\nsteps = [{{ text = '''Look: ```json\n{CALL}\n```''' }}]");
    let provider = TextCalls::new(scripted(&script));
    let (message, failure) = message(&provider, bash(), Cancel::never()).await;
    assert_eq!((failure, message.stop_reason), (None, StopReason::ToolUse));
    assert_eq!(message.content.len(), 2);
    assert_eq!(message.content[0], AssistantBlock::text("Look: "));
    let calls: Vec<_> =
        message.tool_calls().map(|call| (call.name.as_str(), &call.arguments)).collect();
    let arguments = ToolArguments::Object(RawJson::parse(LS.1).expect("JSON"));
    assert_eq!(calls, [("bash", &arguments)]);
}

#[tokio::test]
async fn several_written_calls_get_unique_ids() {
    let script = format!("[[reply]]\nsteps = [{{ text = '[{CALL}, {CALL}, {CALL}]' }}]");
    let provider = TextCalls::new(scripted(&script));
    let (message, _) = message(&provider, bash(), Cancel::never()).await;
    let ids: std::collections::HashSet<_> = message.tool_calls().map(|call| &call.id).collect();
    assert_eq!((ids.len(), message.content.len()), (3, 3));
}

#[tokio::test]
async fn an_answer_without_calls_is_the_same_message_with_and_without_the_layer() {
    let inner = TestProvider::sending(answer("plain"));
    let plain = message(&inner, bash(), Cancel::never()).await;
    assert_eq!(message(&TextCalls::new(inner), bash(), Cancel::never()).await, plain);
}
