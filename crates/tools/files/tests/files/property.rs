//! What holds for every text and every edit.

use proptest::prelude::*;
use serde_json::json;

use crate::world::{Outcome, World};

/// Short lines of few letters, so that they repeat; every kind of line break; a mark now and then.
fn text() -> impl Strategy<Value = String> {
    let line = ("[ \t]{0,4}", "[ab\u{201c}\"\u{fc}-]{0,3}", "[ \t]{0,2}");
    let end = prop_oneof![4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("")];
    let line = (line, end).prop_map(|((lead, word, trail), end)| lead + &word + &trail + end);
    let lines = prop::collection::vec(line, 1..12);
    (prop::bool::weighted(0.2), lines)
        .prop_map(|(mark, lines)| if mark { "\u{feff}" } else { "" }.to_owned() + &lines.concat())
}

fn at_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at % (text.len() + 1))
}

/// How often, also where it overlaps itself.
fn times(text: &str, part: &str) -> usize {
    let places = (0..text.len()).filter(|at| text.as_bytes()[*at..].starts_with(part.as_bytes()));
    places.count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A part of the text that is there once, given as it is, is replaced, and nothing else.
    #[test]
    fn an_exact_edit_changes_what_it_names(text in text(), from: usize, to: usize, new in "[xy]{1,3}") {
        let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (from, to) = (at_char(body, from), at_char(body, to));
        let (from, to) = (from.min(to), from.max(to));
        let old = &body[from..to];
        prop_assume!(!old.is_empty() && !old.contains('\r'));
        // Line breaks of both kinds count as the same: then it may be there more often.
        let plain = |text: &str| text.replace("\r\n", "\n");
        prop_assume!(times(&plain(body), old) == 1);
        // A line break of two characters is replaced whole.
        let from = if old.starts_with('\n') && body[..from].ends_with('\r') { from - 1 } else { from };
        let mark = &text[..text.len() - body.len()];
        let expected = format!("{mark}{}{new}{}", &body[..from], &body[to..]);
        let world = World::new();
        world.put("f", &text);
        world.edit("f", old, &new).tool_output();
        prop_assert_eq!(String::from_utf8(world.bytes("f")).unwrap(), expected);
    }

    /// Lines that a model saw without their ends and quotes are found, or refused; what is before
    /// and behind them stays as it is.
    #[test]
    fn a_tolerant_edit_leaves_what_it_does_not_name(text in text(), from: usize, count in 1_usize..4) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        prop_assume!(!lines.is_empty());
        let from = from % lines.len();
        let count = count.min(lines.len() - from);
        let old: Vec<String> = lines[from..from + count]
            .iter()
            .map(|line| line.trim_start_matches('\u{feff}').trim_end().replace('\u{201c}', "\""))
            .collect();
        let old = old.join("\n");
        prop_assume!(!old.is_empty());
        let world = World::new();
        world.put("f", &text);
        let outcome = world.edit("f", &old, "NEW");
        let found = String::from_utf8(world.bytes("f")).unwrap();
        match outcome {
            Outcome::Failed(_) => prop_assert_eq!(found, text),
            Outcome::Said(_) => {
                let (before, behind) = found.split_once("NEW").unwrap();
                prop_assert!(text.starts_with(before), "{before:?} {text:?}");
                prop_assert!(text.ends_with(behind), "{behind:?} {text:?}");
                prop_assert!(before.len() + behind.len() < text.len());
            }
            other @ (Outcome::Invalid(_) | Outcome::Other(_)) => panic!("{other:?}"),
        }
    }

    /// What is read line by line is the text.
    #[test]
    fn what_is_read_is_the_text(text in text(), offset in 1_u64..6, limit in 1_u64..6) {
        let world = World::new();
        world.put("f", &text);
        let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let lines: Vec<&str> = body.split_inclusive('\n').collect();
        let arguments = json!({ "path": "f", "offset": offset, "limit": limit });
        let outcome = world.call("read", &arguments);
        let first = usize::try_from(offset).unwrap() - 1;
        if first >= lines.len() {
            prop_assert!(!matches!(&outcome, Outcome::Said(tool_output) if tool_output.contains('\t')));
            return Ok(());
        }
        let tool_output = outcome.tool_output();
        let shown = tool_output.lines().filter(|line| !line.starts_with('['));
        let shown: Vec<&str> = shown.map(|line| line.split_once('\t').unwrap().1).collect();
        let wanted = lines[first..].iter().take(usize::try_from(limit).unwrap());
        let wanted: Vec<&str> = wanted
            .map(|line| line.strip_suffix("\r\n").or(line.strip_suffix('\n')).unwrap_or(line))
            .collect();
        prop_assert_eq!(shown, wanted);
    }
}
