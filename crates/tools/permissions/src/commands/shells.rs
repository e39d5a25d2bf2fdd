//! Shells, and what they are told to run.

use super::wrapper::joined;
use super::{Doubt, Inside, Look};
use crate::shell::{Dialect, Word};

/// What `name` runs, if it is a shell.
pub(super) fn look(name: &str, words: &[Word]) -> Option<Look> {
    let (dialect, foreign) = match name {
        "bash" | "rbash" => (Dialect::Bash, false),
        "sh" | "dash" | "ash" => (Dialect::Posix, false),
        "zsh" | "ksh" | "ksh93" | "mksh" | "fish" | "csh" | "tcsh" | "yash" | "nu" | "pwsh" => {
            (Dialect::Bash, true)
        }
        "eval" => return Some(evaluated(words)),
        _ => return None,
    };
    let mut look = shell(name, words, dialect);
    if foreign && !look.inside.is_empty() {
        look.doubts.push(Doubt::opaque(format!("it is written for `{name}`, not for bash")));
    }
    Some(look)
}

fn evaluated(words: &[Word]) -> Look {
    let from = 1 + usize::from(words.get(1).is_some_and(|word| word.literal() == Some("--")));
    joined("eval", words.get(from..).unwrap_or_default(), None)
}

fn shell(name: &str, words: &[Word], dialect: Dialect) -> Look {
    let mut doubts = Vec::new();
    let mut command = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            let reason = format!("what `{name}` runs is not written out");
            return Look::doubt(Doubt::opaque(reason));
        };
        let Some(option) = text.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty()) else {
            break;
        };
        at += 1;
        if option == "-" {
            break;
        }
        if let Some(long) = option.strip_prefix('-') {
            match long {
                "norc" | "noprofile" | "login" | "verbose" | "restricted" | "noediting" => {}
                "help" | "version" => return Look::default(),
                _ => doubts.push(Doubt::odd(format!("`{name}` is given `{text}`"))),
            }
            at += usize::from(matches!(long, "rcfile" | "init-file"));
            continue;
        }
        command |= text.starts_with('-') && option.contains('c');
        for _ in option.matches(['o', 'O']) {
            let value = words.get(at).and_then(Word::literal);
            if !matches!(value, Some("errexit" | "nounset" | "pipefail" | "xtrace" | "noglob")) {
                doubts.push(Doubt::odd(format!("`{name}` is given `{text}`")));
            }
            at += 1;
        }
    }
    match (words.get(at), command) {
        (Some(script), true) => match script.literal() {
            Some(text) => Look {
                wraps: true,
                doubts,
                inside: vec![Inside::Script(text.to_owned(), Some(dialect))],
                ..Look::default()
            },
            None => {
                doubts.push(Doubt::opaque(format!("what `{name}` runs is not written out")));
                Look { doubts, ..Look::default() }
            }
        },
        // A file is a program like any other, unless it is the input by another name.
        (Some(file), false) if !is_input(file) => Look { doubts, ..Look::default() },
        (Some(_), false) | (None, _) => {
            doubts.push(Doubt::opaque(format!("`{name}` runs whatever it is sent")));
            Look { doubts, ..Look::default() }
        }
    }
}

fn is_input(file: &Word) -> bool {
    let input = |path: &str| path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/");
    file.literal().is_none_or(input)
}
