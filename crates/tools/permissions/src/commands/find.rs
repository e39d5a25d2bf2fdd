//! `find`, which runs commands, removes files and writes them.

use super::wrapper::replace;
use super::{Inside, Look};
use crate::shell::Word;

pub(super) fn look(words: &[Word]) -> Look {
    let mut look = Look::default();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        match word.literal() {
            Some(option @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                look.elsewhere |= option.ends_with("dir");
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
                let inside = replace(&rest[..length], "{}");
                look.inside.push(Inside::Command(inside));
                at += length;
            }
            Some("-delete") => {
                let rm = vec![Word::known("rm"), Word::unknown_rest()];
                look.inside.push(Inside::Command(rm));
            }
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                look.writes.extend(words.get(at).cloned());
            }
            Some(_) | None => {}
        }
    }
    look
}
