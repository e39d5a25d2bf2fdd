//! Options of programs that name a command to run.
//!
//! Programs accept a long option by each prefix of its name, and a short one in a word with others.

use super::options::{ends_in_short, is_long};
use super::{Analysis, Nested, Warning};
use crate::shell::{Dialect, Word};

/// Programs, their short options and their long options whose value is a command.
const COMMANDS: &[(&[&str], &str, &[&str])] = &[
    (
        &["tar", "gtar", "bsdtar"],
        "IF",
        &[
            "use-compress-program",
            "to-command",
            "info-script",
            "new-volume-script",
            "rsh-command",
            "rmt-command",
            "checkpoint-action",
        ],
    ),
    (&["rsync"], "e", &["rsh", "rsync-path"]),
    (&["sort", "gsort"], "", &["compress-program"]),
    (&["split", "gsplit"], "", &["filter"]),
    (&["rg"], "", &["pre", "hostname-bin"]),
    (&["zip"], "", &["unzip-command"]),
    (&["scp", "sftp"], "S", &[]),
    (&["man"], "P", &["pager"]),
    (&["wget"], "", &["use-askpass"]),
];

/// Programs with options that set what their files of settings set, or name such a file.
const SETTINGS: &[(&[&str], &str, &[&str])] = &[
    (&["curl"], "K", &["config"]),
    (&["wget"], "e", &["execute", "config"]),
    (&["scp", "sftp"], "oF", &[]),
    (&["cargo"], "", &["config"]),
    (&["npm", "pnpm", "yarn", "npx"], "", &["script-shell", "node-options", "userconfig"]),
];

/// Adds the commands that the options of `name` run.
pub(super) fn add(name: &str, words: &[Word], analysis: &mut Analysis) {
    let of = |table: &'static [(&[&str], &'static str, &'static [&'static str])]| {
        table.iter().find(|(names, ..)| names.contains(&name))
    };
    for (at, word) in words.iter().enumerate().skip(1) {
        if word.literal() == Some("--") {
            break;
        }
        let next = words.get(at + 1);
        let given = of(COMMANDS).and_then(|(_, short, long)| value(word, next, short, long));
        if let Some(value) = given {
            analysis.warnings.push(runs(name, word));
            run(value, analysis);
        }
        if of(SETTINGS).and_then(|(_, short, long)| value(word, next, short, long)).is_some() {
            analysis.warnings.push(runs(name, word));
        }
    }
}

fn runs(name: &str, word: &Word) -> Warning {
    Warning::unbounded(format!("`{name} {}` may run anything", word.raw()))
}

/// The value of one of these options, if `word` is one.
fn value(word: &Word, next: Option<&Word>, short: &str, long: &[&str]) -> Option<Word> {
    let head = word.head();
    if long.iter().any(|long| is_long(word, long)) {
        return Some(match head.split_once('=') {
            Some((_, value)) if word.literal().is_some() => Word::known(value),
            Some(_) => Word::unknown(),
            None => next.cloned().unwrap_or_else(Word::unknown),
        });
    }
    let attached = short.chars().find_map(|short| ends_in_short(word, short))?;
    Some(match (attached, word.literal()) {
        ("", Some(_)) => next.cloned().unwrap_or_else(Word::unknown),
        (value, Some(_)) => Word::known(value),
        (_, None) => Word::unknown(),
    })
}

fn run(value: Word, analysis: &mut Analysis) {
    match value.literal() {
        Some(text) => {
            // `--checkpoint-action=exec=COMMAND`; its other actions run nothing.
            let script = text.strip_prefix("exec=").unwrap_or(text).to_owned();
            analysis.nested.push(Nested::Script(script, Some(Dialect::Posix)));
        }
        None => analysis.warnings.push(Warning::opaque("an option names a command to run")),
    }
}
