//! Shells, and the scripts they run.

use super::wrapper::joined;
use super::{Analysis, Nested, Warning};
use crate::shell::{Dialect, Word};

/// Analyzes `name` if it is a shell.
pub(super) fn analyze(name: &str, words: &[Word]) -> Option<Analysis> {
    let (dialect, foreign) = match name {
        "bash" | "rbash" => (Dialect::Bash, false),
        "sh" | "dash" | "ash" => (Dialect::Posix, false),
        "zsh" | "ksh" | "ksh93" | "mksh" | "fish" | "csh" | "tcsh" | "yash" | "nu" | "pwsh" => {
            (Dialect::Bash, true)
        }
        "eval" => return Some(evaluated(words)),
        _ => return None,
    };
    let mut analysis = shell(name, words, dialect);
    if foreign && !analysis.nested.is_empty() {
        analysis
            .warnings
            .push(Warning::opaque(format!("it is written for `{name}`, not for bash")));
    }
    Some(analysis)
}

fn evaluated(words: &[Word]) -> Analysis {
    let from = 1 + usize::from(words.get(1).is_some_and(|word| word.literal() == Some("--")));
    joined("eval", words.get(from..).unwrap_or_default(), None)
}

fn shell(name: &str, words: &[Word], dialect: Dialect) -> Analysis {
    let mut warnings = Vec::new();
    let mut command = false;
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            let reason = format!("what `{name}` runs is not written out");
            return Analysis::warning(Warning::opaque(reason));
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
                "help" | "version" => return Analysis::default(),
                _ => warnings.push(Warning::suspicious(format!("`{name}` is given `{text}`"))),
            }
            at += usize::from(matches!(long, "rcfile" | "init-file"));
            continue;
        }
        command |= text.starts_with('-') && option.contains('c');
        for _ in option.matches(['o', 'O']) {
            let value = words.get(at).and_then(Word::literal);
            if !matches!(value, Some("errexit" | "nounset" | "pipefail" | "xtrace" | "noglob")) {
                warnings.push(Warning::suspicious(format!("`{name}` is given `{text}`")));
            }
            at += 1;
        }
    }
    match (words.get(at), command) {
        (Some(script), true) => match script.literal() {
            Some(text) => Analysis {
                wraps: true,
                warnings,
                nested: vec![Nested::Script(text.to_owned(), Some(dialect))],
                ..Analysis::default()
            },
            None => {
                warnings.push(Warning::opaque(format!("what `{name}` runs is not written out")));
                Analysis { warnings, ..Analysis::default() }
            }
        },
        // A script file is a program like any other, unless it is another name of standard input.
        (Some(file), false) if !is_input(file) => Analysis { warnings, ..Analysis::default() },
        (Some(_), false) | (None, _) => {
            warnings.push(Warning::opaque(format!(
                "`{name}` runs the commands that it reads from its input"
            )));
            Analysis { warnings, ..Analysis::default() }
        }
    }
}

fn is_input(file: &Word) -> bool {
    let input = |path: &str| path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/");
    file.literal().is_none_or(input)
}
