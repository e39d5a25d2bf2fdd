//! Programs that write, move or remove the files they are given.
//!
//! An option that is not known counts as one without a value. If it has one, that is one file too
//! many to judge.

use super::Analysis;
use super::options::{ends_in_short, is_long};
use crate::shell::Word;

/// Analyzes `name` if it changes files that its arguments name.
pub(super) fn analyze(name: &str, words: &[Word]) -> Option<Analysis> {
    let all = || operands(name, words).0.into_iter().cloned().collect::<Vec<_>>();
    let mut moves = Vec::new();
    let writes = match name.strip_prefix('g').filter(|_| name != "git").unwrap_or(name) {
        "cp" | "install" => copied(name, words),
        // A link is a second name of what it leads to.
        "ln" | "link" => {
            let writes = copied(name, words);
            moves = linked(&all(), &writes);
            writes
        }
        // What is moved away is gone.
        "mv" => {
            moves = all();
            copied(name, words)
        }
        "rm" if is_recursive(words) => {
            moves = all();
            Vec::new()
        }
        "rm" | "rmdir" | "unlink" | "shred" | "truncate" | "touch" | "mkdir" | "mkfifo"
        | "mknod" => all(),
        "uniq" | "split" => all().into_iter().skip(1).collect(),
        "sort" => outputs(words, 'o', "output"),
        "mktemp" => {
            let mut writes = outputs(words, 'p', "tmpdir");
            let folders: Vec<Word> = writes.iter().filter_map(within).collect();
            writes.extend(folders);
            writes.extend(all());
            writes
        }
        "dd" => words.iter().skip(1).filter_map(dd_output).collect(),
        _ => return None,
    };
    Some(Analysis { writes, moves, ..Analysis::default() })
}

fn is_recursive(words: &[Word]) -> bool {
    words.iter().skip(1).any(|word| {
        is_long(word, "recursive") || ['r', 'R'].iter().any(|c| ends_in_short(word, *c).is_some())
    })
}

/// What links lead to: seen from the current folder, and from the folder of the link.
fn linked(operands: &[Word], links: &[Word]) -> Vec<Word> {
    let mut targets = operands.to_vec();
    for target in operands.iter().filter_map(Word::literal) {
        let folders =
            links.iter().filter_map(Word::literal).filter_map(|link| link.rsplit_once('/'));
        targets.extend(
            folders
                .filter(|_| !target.starts_with('/'))
                .map(|(folder, _)| Word::known(&format!("{folder}/{target}"))),
        );
    }
    targets
}

/// A file in the folder `folder`.
fn within(folder: &Word) -> Option<Word> {
    folder.literal().map(|folder| Word::known(&format!("{folder}/tmp.new")))
}

/// The files that one option names, wherever it stands.
fn outputs(words: &[Word], short: char, long: &str) -> Vec<Word> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let next = || words.get(at + 1).cloned();
        let known = |value: &str| word.literal().map_or_else(Word::unknown, |_| Word::known(value));
        if is_long(word, long) {
            let value = word.head().split_once('=').map(|(_, value)| known(value));
            found.extend(value.or_else(next));
        } else if let Some(value) = ends_in_short(word, short) {
            found.extend(if value.is_empty() { next() } else { Some(known(value)) });
        }
    }
    found
}

/// Short options with a value, and whether `-t` names a folder to write to.
fn valued(name: &str) -> (&'static str, bool) {
    match name.strip_prefix('g').unwrap_or(name) {
        "cp" | "mv" | "ln" => ("tS", true),
        "install" => ("tSmog", true),
        "touch" => ("rdt", false),
        "truncate" => ("rs", false),
        "shred" => ("ns", false),
        "mkdir" | "mkfifo" | "mknod" => ("m", false),
        "mktemp" => ("p", false),
        "uniq" => ("fsw", false),
        "split" => ("abClnt", false),
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
