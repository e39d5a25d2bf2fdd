//! Programs that run the program they are given.

use super::options::{Given, Options, Unknown};
use super::{Doubt, Inside, Look, changes_programs};
use crate::shell::{Dialect, Word};

/// What `name` wraps, if it is a wrapper.
pub(super) fn look(name: &str, words: &[Word]) -> Option<Look> {
    Some(match name {
        "env" => environment(words),
        "xargs" | "gxargs" => arguments(words),
        "sudo" | "doas" => elevated(name, words),
        "watch" => watch(words),
        "flock" => locked(words),
        "command" => {
            if words.get(1).is_some_and(|word| matches!(word.literal(), Some("-v" | "-V"))) {
                return Some(Look::default());
            }
            plain(name, words, COMMAND, 0)
        }
        "busybox" | "toybox" => match words.get(1).map(Word::head) {
            Some(applet) if !applet.starts_with('-') => Look::wrapper(&words[1..]),
            Some(_) | None => Look::default(),
        },
        _ => {
            let (options, operands) = PLAIN
                .iter()
                .find(|(names, ..)| names.contains(&name))
                .map(|(_, options, operands)| (*options, *operands))?;
            plain(name, words, options, operands)
        }
    })
}

const NONE: Options =
    Options { flags: "", valued: "", attached: "", long_flags: &[], long_valued: &[] };

const COMMAND: Options = Options { flags: "p", ..NONE };

/// Wrappers that need no more than the options and the operands before what they run.
const PLAIN: &[(&[&str], Options, usize)] = &[
    (&["builtin", "nohup", "unbuffer"], NONE, 0),
    (&["exec"], Options { flags: "cl", valued: "a", ..NONE }, 0),
    (&["setsid"], Options { flags: "cfw", long_flags: &["ctty", "fork", "wait"], ..NONE }, 0),
    (
        &["nice", "gnice"],
        Options { flags: "0123456789", valued: "n", long_valued: &["adjustment"], ..NONE },
        0,
    ),
    (
        &["ionice"],
        Options {
            flags: "t",
            valued: "cn",
            long_flags: &["ignore"],
            long_valued: &["class", "classdata"],
            ..NONE
        },
        0,
    ),
    (&["taskset"], Options { flags: "ac", long_flags: &["all-tasks", "cpu-list"], ..NONE }, 1),
    (
        &["stdbuf", "gstdbuf"],
        Options { valued: "ioe", long_valued: &["input", "output", "error"], ..NONE },
        0,
    ),
    (
        &["time", "gtime"],
        Options {
            flags: "apvq",
            valued: "fo",
            long_flags: &["append", "portability", "verbose", "quiet"],
            long_valued: &["format", "output"],
            ..NONE
        },
        0,
    ),
    (
        &["timeout", "gtimeout"],
        Options {
            flags: "v",
            valued: "ks",
            long_flags: &["foreground", "preserve-status", "verbose"],
            long_valued: &["kill-after", "signal"],
            ..NONE
        },
        1,
    ),
];

fn plain(name: &str, words: &[Word], options: Options, operands: usize) -> Look {
    match options.read(words) {
        Err(unknown) => not_understood(name, &unknown),
        Ok((_, at)) => match words.get(at + operands..) {
            Some(inside @ [_, ..]) => {
                // An operand that is several words would move the start of what is inside.
                let before = &words[at..at + operands];
                if before.iter().any(Word::splits) {
                    return not_understood(name, &Unknown(before[0].raw().to_owned()));
                }
                Look::wrapper(inside)
            }
            Some([]) | None => Look::default(),
        },
    }
}

fn not_understood(name: &str, Unknown(option): &Unknown) -> Look {
    let reason = format!("`{name}` is given `{option}`, so what it runs is not known");
    Look { wraps: true, ..Look::doubt(Doubt::opaque(reason)) }
}

fn environment(words: &[Word]) -> Look {
    const OPTIONS: Options = Options {
        flags: "i0v",
        valued: "uC",
        attached: "",
        long_flags: &["ignore-environment", "null", "debug", "block-signal", "default-signal"],
        long_valued: &["unset", "chdir"],
    };
    let (given, at) = match OPTIONS.read(words) {
        Ok(read) => read,
        Err(unknown) => return not_understood("env", &unknown),
    };
    let elsewhere = moves(&given, 'C');
    // A lone dash is `-i`.
    let at = at + usize::from(words.get(at).is_some_and(|word| word.literal() == Some("-")));
    Look { elsewhere, ..assigning("env", words, at, Vec::new()) }
}

/// Whether one of these options sets the folder.
fn moves(given: &[Given<'_>], short: char) -> bool {
    given.iter().any(|option| match option {
        Given::Short(c, _) | Given::Attached(c, _) => *c == short,
        Given::Long(name) => *name == "chdir",
    })
}

/// Assignments, then a command.
fn assigning(name: &str, words: &[Word], mut at: usize, mut doubts: Vec<Doubt>) -> Look {
    while let Some(word) = words.get(at) {
        let Some((variable, _)) = word.head().split_once('=') else {
            if word.literal().is_none() {
                return not_understood(name, &Unknown(word.raw().to_owned()));
            }
            break;
        };
        if word.splits() {
            return not_understood(name, &Unknown(word.raw().to_owned()));
        }
        if changes_programs(variable) {
            doubts.push(Doubt::odd(format!("it sets `{variable}`, which changes what runs")));
        }
        at += 1;
    }
    match words.get(at..) {
        Some(inside @ [_, ..]) => Look { doubts, ..Look::wrapper(inside) },
        Some([]) | None => Look { doubts, ..Look::default() },
    }
}

fn arguments(words: &[Word]) -> Look {
    const OPTIONS: Options = Options {
        flags: "0rtxpo",
        valued: "nLPdEsaI",
        attached: "iel",
        long_flags: &[
            "null",
            "no-run-if-empty",
            "verbose",
            "exit",
            "interactive",
            "open-tty",
            "show-limits",
        ],
        long_valued: &["max-args", "max-procs", "delimiter", "max-chars", "arg-file"],
    };
    let (given, at) = match OPTIONS.read(words) {
        Ok(read) => read,
        Err(unknown) => return not_understood("xargs", &unknown),
    };
    let mut replaced = None;
    for option in given {
        match option {
            Given::Short('I', Some(word)) => match word.literal() {
                Some(text) => replaced = Some(text),
                None => return not_understood("xargs", &Unknown(word.raw().to_owned())),
            },
            Given::Attached('I', text) => replaced = Some(text),
            Given::Attached('i', text) => {
                replaced = Some(if text.is_empty() { "{}" } else { text });
            }
            Given::Short(..) | Given::Attached(..) | Given::Long(_) => {}
        }
    }
    let inside = words.get(at..).unwrap_or_default();
    if inside.is_empty() {
        return Look::default();
    }
    let mut inside = match replaced {
        Some(text) => replace(inside, text),
        None => inside.to_vec(),
    };
    if replaced.is_none() {
        inside.push(Word::unknown_rest());
    }
    Look::wrapper(&inside)
}

/// `words` with those not known that have `text` in them.
pub(super) fn replace(words: &[Word], text: &str) -> Vec<Word> {
    let unknown = |word: &Word| {
        let has = |part: &str| part.contains(text);
        has(word.head()) || word.tail().is_some_and(has)
    };
    words.iter().map(|word| if unknown(word) { Word::unknown() } else { word.clone() }).collect()
}

fn elevated(name: &str, words: &[Word]) -> Look {
    const OPTIONS: Options = Options {
        flags: "ABbEeHiKklLNnPSsv",
        valued: "CDghpRrTtUu",
        attached: "",
        long_flags: &["preserve-env", "non-interactive", "login", "shell", "set-home", "stdin"],
        long_valued: &["user", "group", "chdir", "host", "prompt"],
    };
    let risk = Doubt::risky(format!("`{name}` runs it as another user"));
    let (given, at) = match OPTIONS.read(words) {
        Ok(read) => read,
        Err(unknown) => {
            let mut look = not_understood(name, &unknown);
            look.doubts.push(risk);
            return look;
        }
    };
    // It is never only a wrapper: whoever allows what is inside has not allowed this.
    let elsewhere = moves(&given, 'D') || moves(&given, 'i');
    Look { wraps: false, elsewhere, ..assigning(name, words, at, vec![risk]) }
}

fn watch(words: &[Word]) -> Look {
    const OPTIONS: Options = Options {
        flags: "bcCefgprtwx",
        valued: "nq",
        attached: "d",
        long_flags: &["beep", "color", "errexit", "chgexit", "precise", "no-title", "exec"],
        long_valued: &["interval"],
    };
    match OPTIONS.read(words) {
        Err(unknown) => not_understood("watch", &unknown),
        Ok((given, at)) if given.contains(&Given::Short('x', None)) => Look::wrapper(&words[at..]),
        Ok((given, at)) if given.contains(&Given::Long("exec")) => Look::wrapper(&words[at..]),
        Ok((_, at)) => joined("watch", &words[at..], Some(Dialect::Posix)),
    }
}

/// What is run when `words` are joined and read as a script.
pub(super) fn joined(name: &str, words: &[Word], dialect: Option<Dialect>) -> Look {
    let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    match texts {
        Some(texts) => Look {
            wraps: true,
            inside: vec![Inside::Script(texts.join(" "), dialect)],
            ..Look::default()
        },
        None => {
            let reason = format!("what `{name}` runs is not written out");
            Look { wraps: true, ..Look::doubt(Doubt::opaque(reason)) }
        }
    }
}

fn locked(words: &[Word]) -> Look {
    const OPTIONS: Options = Options {
        flags: "sexunoFv",
        valued: "wE",
        attached: "",
        long_flags: &["shared", "exclusive", "unlock", "nonblock", "close", "no-fork", "verbose"],
        long_valued: &["timeout", "wait", "conflict-exit-code"],
    };
    let at = match OPTIONS.read(words) {
        Ok((_, at)) => at,
        Err(unknown) => return not_understood("flock", &unknown),
    };
    match words.get(at..) {
        Some([file, ..]) if file.splits() => {
            not_understood("flock", &Unknown(file.raw().to_owned()))
        }
        Some([_, option, script, ..]) if matches!(option.literal(), Some("-c" | "--command")) => {
            joined("flock", std::slice::from_ref(script), Some(Dialect::Posix))
        }
        Some([_, inside @ ..]) if !inside.is_empty() => Look::wrapper(inside),
        Some(_) | None => Look::default(),
    }
}
