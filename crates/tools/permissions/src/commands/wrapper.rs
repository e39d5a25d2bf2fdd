//! Programs that run another program, given in their arguments.

use super::options::{Options, ParsedOption, UnknownOption, ends_in_short};
use super::{Analysis, Nested, Warning, environment};
use crate::shell::{Dialect, Word};

/// Whether the wrapper `name` only passes a command on: it takes no words from elsewhere, opens no
/// file and does not change what the command loads.
pub(super) fn changes_nothing(name: &str) -> bool {
    matches!(
        name,
        "env"
            | "command"
            | "builtin"
            | "exec"
            | "nice"
            | "gnice"
            | "ionice"
            | "nohup"
            | "setsid"
            | "stdbuf"
            | "gstdbuf"
            | "taskset"
            | "time"
            | "gtime"
            | "timeout"
            | "gtimeout"
            | "sh"
            | "bash"
            | "dash"
            | "eval"
            | "git"
    )
}

/// Analyzes `name` if it is a wrapper.
pub(super) fn analyze(name: &str, words: &[Word]) -> Option<Analysis> {
    Some(match name {
        "env" => in_environment(words),
        "xargs" | "gxargs" => arguments(words),
        "sudo" | "doas" => elevated(name, words),
        "watch" => watch(words),
        "flock" => locked(words),
        "time" | "gtime" => timed(name, words),
        "command" => {
            if words.get(1).is_some_and(|word| matches!(word.literal(), Some("-v" | "-V"))) {
                return Some(Analysis::default());
            }
            plain(name, words, COMMAND, 0)
        }
        "busybox" | "toybox" => match words.get(1).map(Word::head) {
            Some(applet) if !applet.starts_with('-') => Analysis::wrapper(&words[1..]),
            Some(_) | None => Analysis::default(),
        },
        "setarch" => architecture(words),
        "linux32" | "linux64" | "i386" | "i486" | "i586" | "i686" | "x86_64" | "uname26" => {
            personality(name, words)
        }
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

/// Wrappers that take only options and operands before the nested command.
const PLAIN: &[(&[&str], Options, usize)] = &[
    (&["builtin", "eatmydata", "nohup", "torsocks", "tsocks", "unbuffer"], NONE, 0),
    (&["dbus-run-session"], Options { long_valued: &["config-file"], ..NONE }, 0),
    (
        &["faketime"],
        Options { flags: "mf", valued: "p", long_flags: &["exclude-monotonic"], ..NONE },
        1,
    ),
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
    (&["choom"], Options { valued: "np", long_valued: &["adjust", "pid"], ..NONE }, 0),
    (
        &["uclampset"],
        Options {
            flags: "asRv",
            valued: "mMp",
            long_flags: &["all-tasks", "system", "reset-on-fork", "verbose"],
            long_valued: &["util-min", "util-max", "pid"],
            ..NONE
        },
        0,
    ),
    (&["ssh-agent"], Options { flags: "csDdkTu", valued: "aEOPt", ..NONE }, 0),
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

fn plain(name: &str, words: &[Word], options: Options, operands: usize) -> Analysis {
    match options.read(words) {
        Err(unknown) => not_understood(name, &unknown),
        Ok((_, at)) => match words.get(at + operands..) {
            Some(nested @ [_, ..]) => {
                // An operand of several words would move the start of the nested command.
                let before = &words[at..at + operands];
                if before.iter().any(Word::splits) {
                    return not_understood(name, &UnknownOption(before[0].raw().to_owned()));
                }
                Analysis::wrapper(nested)
            }
            Some([]) | None => Analysis::default(),
        },
    }
}

/// Options of `setarch` and its other names.
const PERSONALITY: Options = Options {
    flags: "BFILRSTXZv3",
    long_flags: &[
        "32bit",
        "fdpic-funcptrs",
        "short-inode",
        "addr-compat-layout",
        "addr-no-randomize",
        "whole-seconds",
        "sticky-timeouts",
        "read-implies-exec",
        "mmap-page-zero",
        "3gb",
        "4gb",
        "uname-2.6",
        "verbose",
    ],
    ..NONE
};

/// A program that runs another one, or a shell that reads its input.
fn personality(name: &str, words: &[Word]) -> Analysis {
    let analysis = plain(name, words, PERSONALITY, 0);
    if analysis.nested.is_empty() && analysis.warnings.is_empty() {
        let reason = format!("`{name}` alone runs a shell, and what that reads is not known");
        return Analysis { wraps: true, ..Analysis::warning(Warning::opaque(reason)) };
    }
    analysis
}

/// `setarch [ARCHITECTURE] [OPTION…] [PROGRAM…]`: a first word that is no option may be either.
fn architecture(words: &[Word]) -> Analysis {
    match words.get(1) {
        Some(first) if first.literal().is_some_and(|text| !text.starts_with('-')) => {
            let mut analysis = personality("setarch", &words[1..]);
            let as_program = words.get(1..).unwrap_or_default().to_vec();
            analysis.nested.push(Nested::Command(as_program));
            analysis
        }
        Some(_) | None => personality("setarch", words),
    }
}

/// `time` as a program: it writes what it measured to a file, in a format of its caller.
fn timed(name: &str, words: &[Word]) -> Analysis {
    const OPTIONS: Options = Options {
        flags: "apvq",
        valued: "fo",
        attached: "",
        long_flags: &["append", "portability", "verbose", "quiet"],
        long_valued: &["format", "output"],
    };
    let mut analysis = plain(name, words, OPTIONS, 0);
    let end = OPTIONS.read(words).map_or(words.len(), |(_, at)| at);
    for (at, word) in words.iter().enumerate().take(end).skip(1) {
        let next = || words.get(at + 1).cloned();
        let file = match (word.head().strip_prefix("--output"), ends_in_short(word, 'o')) {
            (Some(value), _) => value.strip_prefix('=').map(Word::known).or_else(next),
            (None, Some("")) => next(),
            (None, Some(value)) => Some(Word::known(value)),
            (None, None) => None,
        };
        analysis.writes.extend(file);
    }
    analysis
}

fn not_understood(name: &str, UnknownOption(option): &UnknownOption) -> Analysis {
    let reason = format!("`{name}` is given `{option}`, so what it runs is not known");
    Analysis { wraps: true, ..Analysis::warning(Warning::opaque(reason)) }
}

fn in_environment(words: &[Word]) -> Analysis {
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
    let changes_folder_inside = changes_folder(&given, 'C');
    // A lone dash is `-i`.
    let is_dash = words.get(at).is_some_and(|word| word.literal() == Some("-"));
    let removes = is_dash || given.iter().any(removes_variables);
    // Without a search path, programs are looked for at places that differ by system.
    let reason = || Warning::unbounded("it removes variables, which may change what runs");
    let warnings = removes.then(reason).into_iter().collect();
    Analysis {
        changes_folder_inside,
        ..assigning("env", words, at + usize::from(is_dash), warnings)
    }
}

fn removes_variables(option: &ParsedOption<'_>) -> bool {
    match option {
        ParsedOption::Short(c, _) | ParsedOption::Attached(c, _) => matches!(c, 'i' | 'u'),
        ParsedOption::Long(name) => matches!(*name, "ignore-environment" | "unset"),
    }
}

/// Whether one of these options sets the folder.
fn changes_folder(given: &[ParsedOption<'_>], short: char) -> bool {
    given.iter().any(|option| match option {
        ParsedOption::Short(c, _) | ParsedOption::Attached(c, _) => *c == short,
        ParsedOption::Long(name) => *name == "chdir",
    })
}

/// Assignments, then a command.
fn assigning(name: &str, words: &[Word], mut at: usize, mut warnings: Vec<Warning>) -> Analysis {
    while let Some(word) = words.get(at) {
        let Some((variable, _)) = word.head().split_once('=') else {
            if word.literal().is_none() {
                return not_understood(name, &UnknownOption(word.raw().to_owned()));
            }
            break;
        };
        if word.splits() {
            return not_understood(name, &UnknownOption(word.raw().to_owned()));
        }
        let value = word.literal().and_then(|text| text.split_once('='));
        warnings.extend(environment::warning(variable, value.map(|(_, value)| value)));
        at += 1;
    }
    match words.get(at..) {
        Some(nested @ [_, ..]) => Analysis { warnings, ..Analysis::wrapper(nested) },
        Some([]) | None => Analysis { warnings, ..Analysis::default() },
    }
}

fn arguments(words: &[Word]) -> Analysis {
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
            ParsedOption::Short('I', Some(word)) => match word.literal() {
                Some(text) => replaced = Some(text),
                None => return not_understood("xargs", &UnknownOption(word.raw().to_owned())),
            },
            ParsedOption::Attached('I', text) => replaced = Some(text),
            ParsedOption::Attached('i', text) => {
                replaced = Some(if text.is_empty() { "{}" } else { text });
            }
            ParsedOption::Short(..) | ParsedOption::Attached(..) | ParsedOption::Long(_) => {}
        }
    }
    let nested = words.get(at..).unwrap_or_default();
    if nested.is_empty() {
        return Analysis::default();
    }
    let mut nested = match replaced {
        Some(text) => replace(nested, text),
        None => nested.to_vec(),
    };
    if replaced.is_none() {
        nested.push(Word::unknown_rest());
    }
    Analysis::wrapper(&nested)
}

/// `words`, with each word that contains `text` made unknown.
pub(super) fn replace(words: &[Word], text: &str) -> Vec<Word> {
    let unknown = |word: &Word| {
        let has = |part: &str| part.contains(text);
        has(word.head()) || word.tail().is_some_and(has)
    };
    words.iter().map(|word| if unknown(word) { Word::unknown() } else { word.clone() }).collect()
}

fn elevated(name: &str, words: &[Word]) -> Analysis {
    const OPTIONS: Options = Options {
        flags: "ABbEeHiKklLNnPSsv",
        valued: "CDghpRrTtUu",
        attached: "",
        long_flags: &["preserve-env", "non-interactive", "login", "shell", "set-home", "stdin"],
        long_valued: &["user", "group", "chdir", "host", "prompt"],
    };
    let risk = Warning::risky(format!("`{name}` runs it as another user"));
    let (given, at) = match OPTIONS.read(words) {
        Ok(read) => read,
        Err(unknown) => {
            let mut analysis = not_understood(name, &unknown);
            analysis.warnings.push(risk);
            return analysis;
        }
    };
    // Never only a wrapper: a rule that allows the nested command does not allow this.
    let changes_folder_inside = changes_folder(&given, 'D') || changes_folder(&given, 'i');
    Analysis { wraps: false, changes_folder_inside, ..assigning(name, words, at, vec![risk]) }
}

fn watch(words: &[Word]) -> Analysis {
    const OPTIONS: Options = Options {
        flags: "bcCefgprtwx",
        valued: "nq",
        attached: "d",
        long_flags: &["beep", "color", "errexit", "chgexit", "precise", "no-title", "exec"],
        long_valued: &["interval"],
    };
    match OPTIONS.read(words) {
        Err(unknown) => not_understood("watch", &unknown),
        Ok((given, at)) if given.contains(&ParsedOption::Short('x', None)) => {
            Analysis::wrapper(&words[at..])
        }
        Ok((given, at)) if given.contains(&ParsedOption::Long("exec")) => {
            Analysis::wrapper(&words[at..])
        }
        Ok((_, at)) => joined("watch", &words[at..], Some(Dialect::Posix)),
    }
}

/// Analyzes a program that joins `words` and runs them as a script.
pub(super) fn joined(name: &str, words: &[Word], dialect: Option<Dialect>) -> Analysis {
    let texts: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    match texts {
        Some(texts) => Analysis {
            wraps: true,
            nested: vec![Nested::Script(texts.join(" "), dialect)],
            ..Analysis::default()
        },
        None => {
            let reason = format!("what `{name}` runs is not written out");
            Analysis { wraps: true, ..Analysis::warning(Warning::opaque(reason)) }
        }
    }
}

fn locked(words: &[Word]) -> Analysis {
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
    let file = words.get(at).cloned();
    let mut analysis = match words.get(at..) {
        Some([file, ..]) if file.splits() => {
            not_understood("flock", &UnknownOption(file.raw().to_owned()))
        }
        Some([_, option, script, ..]) if matches!(option.literal(), Some("-c" | "--command")) => {
            joined("flock", std::slice::from_ref(script), Some(Dialect::Posix))
        }
        Some([_, nested @ ..]) if !nested.is_empty() => Analysis::wrapper(nested),
        Some(_) | None => Analysis::default(),
    };
    // It creates the file that it locks; a number is a descriptor that is open already.
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    analysis.writes.extend(file.filter(|file| !file.literal().is_some_and(is_number)));
    analysis
}
