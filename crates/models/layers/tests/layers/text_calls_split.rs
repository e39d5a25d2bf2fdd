//! The result does not depend on how a text is split into deltas.

use proptest::prelude::*;

use crate::text_calls::{HELD_BYTES_MAX, Outcome, outcome};

/// A part of an answer and its expected output.
#[derive(Debug, Clone)]
struct Part {
    written: &'static str,
    text: &'static str,
    call: Option<(&'static str, &'static str)>,
}

/// Text that must stay unchanged.
const PROSE: [&str; 16] = [
    "Let me see.",
    "a < b > c",
    "`code` and ``more``",
    "<tool_ca",
    "<tool_call",
    "</tool_call>",
    "[1] {2}",
    "{\"name\": \"bash\"}",
    "é ✓ 漢字 🎭",
    "```rust\nfn main() { let s = \"``\n\"; }\n```",
    "```json\n{\"name\": \"rm\", \"arguments\": {}}\n```",
    "```json\n{\"quote\": \"never closed\n```",
    "<tool_call>{\"name\": \"é\"}</tool_call>",
    "<function_call>ls</function_call>",
    "``` é ```",
    "\n\n",
];

const CALLS: [Part; 6] = [
    call("<tool_call>{\"name\":\"bash\"}</tool_call>", "bash", "{}"),
    call("```json\n{\"name\": \"bash\", \"args\": {\"é\": 1.0}}\n```", "bash", "{\"é\": 1.0}"),
    call("```{\"tool\":\"read\",\"input\":\"{}\"}```", "read", "{}"),
    call("<function_call>[{\"function\":{\"name\":\"read\"}}]</function_call>", "read", "{}"),
    call(
        "```\n{\"name\":\"bash\",\"input\":{\"c\":\"```x``` \\\" </tool_call>\"}}```",
        "bash",
        "{\"c\":\"```x``` \\\" </tool_call>\"}",
    ),
    call("<tool_call>\n[{\"name\":\"read\",\"args\":null}]\n</tool_call>", "read", "{}"),
];

const fn call(written: &'static str, name: &'static str, arguments: &'static str) -> Part {
    Part { written, text: "", call: Some((name, arguments)) }
}

fn part() -> impl Strategy<Value = Part> {
    let prose = prop::sample::select(PROSE.to_vec());
    let prose = prose.prop_map(|written| Part { written, text: written, call: None });
    prop_oneof![prose, prop::sample::select(CALLS.to_vec())]
}

/// An answer of several parts, separated by spaces, and its expected output.
fn answer() -> impl Strategy<Value = (String, Outcome)> {
    prop::collection::vec(part(), 1..8).prop_map(|parts| {
        // A word first: a call that is the whole answer is tested elsewhere.
        let (mut written, mut expected) = ("So ".to_owned(), Outcome::text("So "));
        for part in parts {
            written.extend([part.written, " "]);
            expected.text.extend([part.text, " "]);
            let call = part.call.map(|(name, arguments)| (name.to_owned(), arguments.to_owned()));
            expected.calls.extend(call);
        }
        (written, expected)
    })
}

/// `text` split after each of these bytes, moved forward to the next character.
fn cut<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.ceil_char_boundary(cut % (text.len() + 1))).collect();
    cuts.sort_unstable();
    let mut rest = text;
    let mut deltas = Vec::new();
    for at in cuts {
        let (delta, behind) = rest.split_at(at - (text.len() - rest.len()));
        deltas.push(delta);
        rest = behind;
    }
    deltas.push(rest);
    deltas
}

#[test]
fn every_part_is_correct_when_split_at_every_byte_and_everywhere() {
    let whole = [
        ("{\"name\":\"bash\",\"args\":{\"a\":\"```é\"}}", "{\"a\":\"```é\"}"),
        (" [ {\"name\":\"bash\"} ] ", "{}"),
        ("```json\n{\"name\":\"bash\"}", "{}"),
    ];
    let whole =
        whole.map(|(written, arguments)| (written, Outcome::of("", &[("bash", arguments)])));
    let parts =
        CALLS.map(|part| (part.written, Outcome::of("", &part.call.map_or(vec![], |c| vec![c]))));
    let prose = PROSE[..7].iter().chain(&PROSE[8..]).map(|text| (*text, Outcome::text(text)));
    for (written, expected) in whole.into_iter().chain(parts).chain(prose) {
        for at in 0..=written.len() {
            assert_eq!(outcome(cut(written, &[at])), expected, "{written} cut at {at}");
        }
        let everywhere: Vec<usize> = (0..written.len()).collect();
        assert_eq!(outcome(cut(written, &everywhere)), expected, "{written}");
    }
}

proptest! {
    #[test]
    fn any_answer_is_correct_however_it_is_split(
        (written, expected) in answer(),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        prop_assert_eq!(outcome(cut(&written, &cuts)), expected);
    }

    #[test]
    fn any_text_has_the_same_result_however_it_is_split(
        words in prop::collection::vec(prop::sample::select(vec![
            "```", "`", "<tool_call>", "</tool_call>", "<", "{\"name\": \"bash\"", "}", "{", "[",
            "]", "\"", "\\", "\n", " ", "json", "é", ",", "{\"name\":\"bash\"}",
        ]), 0..30),
        cuts in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        let written = words.concat();
        let at_once = outcome([written.as_str()]);
        prop_assert_eq!(outcome(cut(&written, &cuts)), at_once);
    }
}

proptest! {
    // Each case reads half a megabyte.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_near_the_limit_have_the_same_result_however_they_are_split(
        filler in HELD_BYTES_MAX - 60..HELD_BYTES_MAX + 10,
        quoted in 0..2_usize,
        tail in prop::sample::select(vec!["", "```", " ``", "\"}```", "\"} é", "<tool_call>"]),
        cuts in prop::collection::vec(any::<usize>(), 0..6),
        late in prop::collection::vec(0..100_usize, 0..6),
    ) {
        let filler = "x".repeat(filler);
        let inside = ["", "``` "][quoted];
        let written = format!(
            "```{{\"name\":\"bash\",\"input\":\"{inside}{filler}\"}}``` a {tail} \
             ```{{\"name\":\"bash\"}}```"
        );
        let at_once = outcome([written.as_str()]);
        let late = late.iter().map(|late| written.len() - late.min(&written.len()));
        let cuts: Vec<usize> = cuts.into_iter().chain(late).collect();
        prop_assert_eq!(outcome(cut(&written, &cuts)), at_once);
    }
}
