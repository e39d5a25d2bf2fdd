//! Programs that write, move or remove the files they are given.
//!
//! An option that is not known counts as one without a value. If it has one, that is one file too
//! many to judge.

use super::Analysis;
use crate::shell::Word;

/// Analyzes `name` if it changes files that its arguments name.
pub(super) fn analyze(name: &str, words: &[Word]) -> Option<Analysis> {
    let writes = match name {
        "cp" | "gcp" | "install" | "ginstall" | "ln" | "gln" => copied(name, words),
        "mv" | "gmv" => {
            // What is moved away is gone.
            let (operands, _) = operands(name, words);
            let mut writes = copied(name, words);
            writes.extend(operands.into_iter().cloned());
            writes
        }
        "rm" | "grm" | "unlink" | "rmdir" | "shred" | "truncate" | "touch" => {
            operands(name, words).0.into_iter().cloned().collect()
        }
        "dd" => words.iter().skip(1).filter_map(dd_output).collect(),
        _ => return None,
    };
    Some(Analysis { writes, ..Analysis::default() })
}

/// Short options with a value, and whether `-t` names a folder to write to.
fn valued(name: &str) -> (&'static str, bool) {
    match name.strip_prefix('g').unwrap_or(name) {
        "cp" | "mv" | "ln" => ("tS", true),
        "install" => ("tSmog", true),
        "touch" => ("rdt", false),
        "truncate" => ("rs", false),
        "shred" => ("ns", false),
        _ => ("", false),
    }
}

/// Long options whose value may be the next word.
const LONG_VALUED: [&str; 10] = [
    "reference",
    "date",
    "time",
    "size",
    "suffix",
    "mode",
    "owner",
    "group",
    "iterations",
    "random-source",
];

/// The arguments that are no options, and the folder that `-t` names.
fn operands<'w>(name: &str, words: &'w [Word]) -> (Vec<&'w Word>, Option<Word>) {
    let (short, has_target) = valued(name);
    let (mut operands, mut target, mut ended) = (Vec::new(), None, false);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let head = word.head();
        let attached =
            |value: &str| word.literal().map_or_else(Word::unknown, |_| Word::known(value));
        if ended || !head.starts_with('-') || head == "-" {
            operands.push(word);
        } else if word.literal() == Some("--") {
            ended = true;
        } else if let Some(long) = head.strip_prefix("--") {
            let (option, value) = long.split_once('=').map_or((long, None), |(o, v)| (o, Some(v)));
            if has_target && option.len() > 1 && "target-directory".starts_with(option) {
                target = value.map(attached).or_else(|| rest.next().cloned());
            } else if value.is_none() && LONG_VALUED.contains(&option) {
                rest.next();
            }
        } else if let Some(at) = head.find(|c| short.contains(c)) {
            let value = &head[at + 1..];
            let next = value.is_empty() && word.literal().is_some();
            let value = if next { rest.next().cloned() } else { Some(attached(value)) };
            if has_target && head[at..].starts_with('t') {
                target = value;
            }
        }
    }
    (operands, target)
}

/// What a copy may overwrite: its last argument, or files of the same names in that folder.
fn copied(name: &str, words: &[Word]) -> Vec<Word> {
    let (mut operands, target) = operands(name, words);
    let makes_folders = name.ends_with("install")
        && words.iter().any(|word| matches!(word.literal(), Some("-d" | "--directory")));
    if makes_folders {
        return operands.into_iter().cloned().collect();
    }
    let folder = match target {
        Some(folder) => folder,
        // `ln file` makes a link in the current folder.
        None if operands.len() == 1 && name.ends_with("ln") => Word::known("."),
        None => match operands.pop() {
            Some(last) => last.clone(),
            None => return Vec::new(),
        },
    };
    let within = operands.iter().map(|source| match (folder.literal(), base_name(source)) {
        (Some(folder), Some(name)) => {
            Word::known(&format!("{}/{name}", folder.trim_end_matches('/')))
        }
        (_, _) => Word::unknown(),
    });
    let mut writes: Vec<Word> = within.collect();
    writes.push(folder);
    writes
}

fn base_name(source: &Word) -> Option<&str> {
    let name = source.literal()?.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(name, "" | "." | "..")).then_some(name)
}

fn dd_output(word: &Word) -> Option<Word> {
    let value = word.head().strip_prefix("of=")?;
    Some(word.literal().map_or_else(Word::unknown, |_| Word::known(value)))
}
