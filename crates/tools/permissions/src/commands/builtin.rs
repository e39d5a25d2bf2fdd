//! Built-in commands of the shell that change later commands, and programs that run other
//! programs in ways this crate does not analyze.

use super::options::Options;
use super::wrapper::joined;
use super::{Analysis, Warning, changes_programs};
use crate::shell::Word;

/// Analyzes `name` if it is risky.
pub(super) fn analyze(name: &str, words: &[Word]) -> Option<Analysis> {
    let option = |c: char| words.iter().skip(1).any(|word| may_be_option(word, c));
    let risk = |what: &str| Some(Analysis::warning(Warning::risky(format!("`{name}` {what}"))));
    match name {
        "." | "source" => risk("runs a file in this shell"),
        "alias" | "enable" | "shopt" | "bind" | "complete" | "compgen" | "compopt" | "fc" => {
            risk("changes what later commands do")
        }
        "hash" if option('p') => risk("changes what later commands do"),
        "mapfile" | "readarray" if option('C') => risk("runs a command for each line"),
        "jobs" if option('x') => risk("runs a command"),
        "trap" => Some(trap(words)),
        "set" if !is_harmless_setting(words) => risk("changes how later commands are read"),
        "tee" => Some(tee(words)),
        "parallel" => {
            Some(Analysis::warning(Warning::opaque("`parallel` makes commands of its input")))
        }
        "ssh" | "slogin" | "autossh" | "mosh" => risk("runs commands on another machine"),
        "su" | "runuser" | "pkexec" | "run0" => risk("runs commands as another user"),
        "chroot" | "unshare" | "nsenter" | "setpriv" | "systemd-run" | "bwrap" | "firejail"
        | "strace" | "ltrace" | "gdb" | "chrt" | "script" | "at" | "batch" | "crontab"
        | "expect" | "prlimit" | "capsh" | "catchsegv" | "proot" | "fakeroot" | "fakechroot"
        | "cgexec" | "numactl" | "chpst" | "softlimit" | "envdir" | "setlock" | "runcon" | "sg"
        | "newgrp" | "start-stop-daemon" | "daemonize" | "su-exec" | "gosu" | "dbus-launch"
        | "proxychains" | "proxychains4" | "tini" | "dumb-init" | "systemd-inhibit" | "rlwrap"
        | "xvfb-run" | "perf" | "run-parts" | "entr" | "direnv" | "watchexec" | "hyperfine"
        | "valgrind" | "cpulimit" | "tmux" | "screen" | "dtach" | "abduco" | "chronic" | "ifne"
        | "lckdo" | "sem" | "setuidgid" | "s6-setuidgid" | "s6-envuidgid" | "s6-setsid"
        | "caffeinate" | "nix-shell" | "socat" => risk("runs commands that are not looked into"),
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" => {
            risk("runs commands that are not looked into")
        }
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            if option('n') && !matches!(name, "export" | "readonly") {
                return risk("gives a variable a second name");
            }
            sets(words)
        }
        "read" | "unset" | "getopts" => sets(words),
        // Without `-v` its operands are text to print, not names.
        "printf" if words.get(1).is_some_and(|word| word.head() == "-v") => sets(words),
        _ => None,
    }
}

/// Whether a word is an option with this letter, or may become one.
fn may_be_option(word: &Word, letter: char) -> bool {
    match word.literal() {
        Some(text) => text.strip_prefix('-').is_some_and(|rest| rest.contains(letter)),
        None => word.head().is_empty() || word.head().starts_with('-'),
    }
}

/// Whether `name` takes names of variables, and with them subscripts.
pub(super) fn sets_names(name: &str) -> bool {
    matches!(
        name,
        "declare"
            | "typeset"
            | "local"
            | "export"
            | "readonly"
            | "read"
            | "mapfile"
            | "readarray"
            | "printf"
            | "unset"
            | "test"
            | "["
            | "wait"
            | "getopts"
            | "let"
    )
}

/// Analyzes an assignment to a variable that changes which programs run.
fn sets(words: &[Word]) -> Option<Analysis> {
    let set = words.iter().skip(1).find_map(|word| {
        let set = word.head().split(['=', '+', '[']).next().unwrap_or_default();
        changes_programs(set).then(|| set.to_owned())
    })?;
    Some(Analysis::warning(Warning::suspicious(format!(
        "it sets `{set}`, which changes what runs"
    ))))
}

fn trap(words: &[Word]) -> Analysis {
    let at = words.iter().skip(1).take_while(|word| word.head().starts_with('-')).count() + 1;
    let mut analysis = match words.get(at) {
        Some(script) => joined("trap", std::slice::from_ref(script), None),
        None => Analysis::default(),
    };
    analysis.wraps = false;
    analysis.warnings.push(Warning::risky("`trap` runs commands later"));
    analysis
}

fn is_harmless_setting(words: &[Word]) -> bool {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(flags) = word.head().strip_prefix(['-', '+']) else {
            return !word.splits();
        };
        if matches!(word.literal(), Some("-" | "--")) {
            return true;
        }
        if word.literal().is_none() || !flags.chars().all(|flag| "aefuxvCo".contains(flag)) {
            return false;
        }
        if flags.contains('o') {
            let named = words.next().and_then(Word::literal);
            if !matches!(
                named,
                None | Some("errexit" | "nounset" | "pipefail" | "xtrace" | "noglob" | "noclobber")
            ) {
                return false;
            }
        }
    }
    true
}

fn tee(words: &[Word]) -> Analysis {
    const OPTIONS: Options = Options {
        flags: "aip",
        valued: "",
        attached: "",
        long_flags: &["append", "ignore-interrupts", "output-error"],
        long_valued: &[],
    };
    let at = OPTIONS.read(words).map_or(1, |(_, at)| at);
    let files = words.get(at..).unwrap_or_default();
    Analysis { writes: files.to_vec(), ..Analysis::default() }
}
