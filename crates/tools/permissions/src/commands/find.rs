//! `find`, which runs commands, removes files and writes them.

use super::wrapper::replace;
use super::{Analysis, Nested};
use crate::shell::Word;

pub(super) fn analyze(words: &[Word]) -> Analysis {
    let mut analysis = Analysis::default();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.literal() {
            Some(option @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                analysis.changes_folder_inside |= option.ends_with("dir");
                let rest = words.get(at..).unwrap_or_default();
                let length = rest
                    .iter()
                    .enumerate()
                    .position(|(at, word)| match word.literal() {
                        Some(";") => true,
                        Some("+") => at > 0 && rest[at - 1].literal() == Some("{}"),
                        Some(_) | None => false,
                    })
                    .unwrap_or(rest.len());
                let nested = replace(&rest[..length], "{}");
                analysis.nested.push(Nested::Command(nested));
                at += length;
            }
            Some("-delete") => {
                let rm = vec![Word::known("rm"), Word::unknown_rest()];
                analysis.nested.push(Nested::Command(rm));
            }
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                analysis.writes.extend(words.get(at).cloned());
            }
            Some(_) | None => {}
        }
    }
    analysis
}
