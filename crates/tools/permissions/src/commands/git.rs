//! `git`, whose options precede its command and may run anything.

use super::options::{ends_in_short, is_long};
use super::{Analysis, Nested, Warning};
use crate::shell::{Dialect, Word};

pub(super) fn analyze(words: &[Word]) -> Analysis {
    let mut analysis = Analysis::default();
    let mut at = 1;
    let mut harmless = true;
    while let Some(word) = words.get(at) {
        let Some(option) = word.literal().filter(|text| text.starts_with('-')) else {
            break;
        };
        at += 1;
        match option {
            "-P"
            | "--no-pager"
            | "--no-optional-locks"
            | "--literal-pathspecs"
            | "--no-replace-objects" => {}
            "-C" => {
                let folder = words.get(at).and_then(Word::literal);
                harmless &= folder.is_some_and(is_below);
                analysis.changes_folder_inside |= !matches!(folder, Some("." | "./"));
                at += 1;
            }
            "-c" if words.get(at).and_then(Word::literal).is_some_and(is_harmless_setting) => {
                at += 1;
            }
            "-c" | "--config-env" | "--exec-path" | "--git-dir" | "--work-tree" | "--namespace"
            | "--super-prefix" | "--attr-source" => {
                analysis
                    .warnings
                    .push(Warning::suspicious(format!("`git {option}` may run anything")));
                // With `=` it is one word; without, the value follows. `--exec-path` alone prints.
                at += usize::from(option != "--exec-path");
            }
            "--version" | "--help" | "-v" | "-h" | "--html-path" | "--man-path" | "--info-path" => {
                return analysis;
            }
            _ => analysis
                .warnings
                .push(Warning::suspicious(format!("`git {option}` may run anything"))),
        }
    }
    let rest = words.get(at..).unwrap_or_default();
    if at == 1 {
        nested(rest, &mut analysis);
    } else if !rest.is_empty() {
        // Rules are written for `git push`, not for `git --no-pager push`.
        let mut plain = vec![Word::known("git")];
        plain.extend_from_slice(rest);
        analysis.nested.push(Nested::Command(plain));
        analysis.wraps = harmless && analysis.warnings.is_empty();
    }
    analysis
}

/// Whether a setting of `-c` only names the author or changes what is shown. Others may name programs.
fn is_harmless_setting(setting: &str) -> bool {
    let Some((key, value)) = setting.split_once('=') else { return false };
    match key.to_ascii_lowercase().as_str() {
        "user.name" | "user.email" | "init.defaultbranch" | "color.ui" | "core.quotepath" => true,
        // `true` runs the program that signs.
        "commit.gpgsign" | "tag.gpgsign" => value == "false",
        _ => false,
    }
}

fn is_below(folder: &str) -> bool {
    !folder.starts_with(['/', '~']) && !folder.split('/').any(|part| part == "..")
}

/// Options of any command of git that run a program, or that use another repository or file.
const RUNNING: &[&str] = &[
    "receive-pack",
    "upload-pack",
    "exec",
    "extcmd",
    "template",
    "open-files-in-pager",
    "config",
    "config-env",
    "git-dir",
    "work-tree",
];

/// Options that run programs which the settings of a repository or of its submodules name.
const CONFIGURED: &[&str] = &[
    "ext-diff",
    "textconv",
    "recurse-submodules",
    "multiple",
    "repo",
    "remote",
    "reference",
    "reference-if-able",
    "separate-git-dir",
    "bundle-uri",
    "tool",
    "output",
    "output-directory",
];

/// Commands that git runs itself, such as `bisect run`.
fn nested(rest: &[Word], analysis: &mut Analysis) {
    let Some(command) = rest.first().and_then(Word::literal) else { return };
    let options = &rest[1..];
    executed(command, options, analysis);
    let mut run = |script: Option<&Word>| match script.and_then(Word::literal) {
        Some(text) => analysis.nested.push(Nested::Script(text.to_owned(), Some(Dialect::Posix))),
        None => analysis.warnings.push(Warning::opaque(format!("`git {command}` runs a command"))),
    };
    let mut runs_programs = matches!(command, "difftool" | "mergetool" | "filter-branch");
    match (command, options.first().and_then(Word::literal)) {
        ("bisect", Some("run")) => {
            runs_programs = true;
            analysis.nested.push(Nested::Command(options[1..].to_vec()));
        }
        ("submodule", Some("foreach")) => {
            let script = options.iter().skip(1).find(|word| !word.head().starts_with('-'));
            run(script);
            analysis.changes_folder_inside = true;
        }
        ("submodule", _) => runs_programs = true,
        ("filter-branch", _) => run(None),
        _ => {}
    }
    if runs_programs {
        analysis.warnings.push(Warning::unbounded(format!("`git {command}` runs other programs")));
    }
    for (at, word) in rest.iter().enumerate().skip(1) {
        if word.literal() == Some("--") {
            break;
        }
        if !is_text(rest, at) {
            analysis.warnings.extend(option(command, word));
        }
    }
    let address = repository(rest);
    if matches!(address, Some(Repository::Folder(_))) || options.iter().any(is_local_address) {
        let reason =
            "it names a repository on this machine, whose hooks and settings may run anything";
        analysis.warnings.push(Warning::unbounded(reason));
    }
    let values = options.iter().filter(|word| !word.head().starts_with('-')).count();
    if command == "config" && values > 1 {
        analysis.warnings.push(Warning::risky("`git config` can change what git runs"));
    }
}

/// Whether the word at `at` is one text, such as the message of a commit; the first word is the command.
pub(crate) fn is_text(words: &[Word], at: usize) -> bool {
    let literal = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let has_messages = matches!(literal(0), "commit" | "merge" | "notes" | "stash" | "tag");
    has_messages
        && at > 1
        && matches!(literal(at - 1), "-m" | "-am" | "-qm" | "-aqm" | "--message")
        && words.get(at).is_some_and(|word| !word.splits())
}

/// The commands of `rebase --exec` and `difftool --extcmd`, however the option is written.
fn executed(command: &str, options: &[Word], analysis: &mut Analysis) {
    let long = match command {
        "rebase" => "exec",
        "difftool" => "extcmd",
        _ => return,
    };
    for (at, word) in options.iter().enumerate() {
        let given = if is_long(word, long) {
            word.head().split_once('=').map(|(_, value)| value)
        } else {
            match ends_in_short(word, 'x') {
                None => continue,
                attached => attached.filter(|value| !value.is_empty()),
            }
        };
        let value = match given {
            Some(value) => word.literal().map(|_| value),
            None => options.get(at + 1).and_then(Word::literal),
        };
        analysis.warnings.push(match value {
            Some(_) => Warning::unbounded(format!("`git {command}` runs a command")),
            None => Warning::opaque(format!("`git {command}` runs a command")),
        });
        let script = value.map(|text| Nested::Script(text.to_owned(), Some(Dialect::Posix)));
        analysis.nested.extend(script);
    }
}

/// The warning about one option, if it needs one.
fn option(command: &str, word: &Word) -> Option<Warning> {
    let anything = || format!("`git {command} {}` may run anything", word.raw());
    let is_executed =
        |long: &&&str| matches!((command, **long), ("rebase", "exec") | ("difftool", "extcmd"));
    if RUNNING.iter().filter(|long| !is_executed(long)).any(|long| is_long(word, long))
        || word.head().starts_with("ext::")
        || (command == "grep" && ends_in_short(word, 'O').is_some())
        || (command == "clone" && ['u', 'c'].iter().any(|c| ends_in_short(word, *c).is_some()))
    {
        return Some(Warning::suspicious(anything()));
    }
    if CONFIGURED.iter().any(|long| is_long(word, long)) {
        return Some(Warning::unbounded(anything()));
    }
    let is_text = !word.splits() && !word.head().is_empty() && !word.head().starts_with('-');
    if word.literal().is_none() && !is_text {
        return Some(Warning::unbounded(format!("a word of `git {command}` is not written out")));
    }
    None
}

/// The repository that a command of git names, or uses if it names none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Repository<'w> {
    /// The one that the settings of the current repository name.
    Default,
    /// The name of a remote; if there is none of that name, git takes it as a folder.
    Named(&'w str),
    /// Another machine.
    Elsewhere,
    /// A folder of this machine, or not known.
    Folder(&'w str),
}

/// The repository that `words` exchange commits with; the first word is the command of git.
pub(crate) fn repository(words: &[Word]) -> Option<Repository<'_>> {
    let command = words.first()?.literal()?;
    let valued: &[&str] = match command {
        "push" => &["-o", "--push-option"],
        "fetch" | "pull" | "ls-remote" => &[
            "-o",
            "--server-option",
            "--depth",
            "--deepen",
            "--shallow-since",
            "--shallow-exclude",
            "--refmap",
            "--negotiation-tip",
            "--filter",
            "-j",
            "--jobs",
        ],
        "clone" => &["-b", "--branch", "-o", "--origin", "--depth", "--filter", "-j", "--jobs"],
        _ => return None,
    };
    // `git ls-remote -o` is another option, and `git pull -s` and `-X` take a value.
    let mut rest = words.iter().skip(1);
    let mut ended = false;
    let named = loop {
        let Some(word) = rest.next() else { break None };
        match word.literal() {
            Some("--") if !ended => ended = true,
            Some(option) if !ended && valued.contains(&option) => {
                rest.next();
            }
            Some("-s" | "--strategy" | "-X" | "--strategy-option")
                if !ended && command == "pull" =>
            {
                rest.next();
            }
            _ if !ended && word.head().starts_with('-') => {}
            _ => break Some(word),
        }
    };
    Some(match named {
        None => Repository::Default,
        Some(word) => match word.literal() {
            Some(name) => of_name(name, command),
            None => Repository::Folder(word.raw()),
        },
    })
}

fn of_name<'w>(name: &'w str, command: &str) -> Repository<'w> {
    const SCHEMES: [&str; 4] = ["https://", "http://", "ssh://", "git://"];
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    let is_address = match name.split_once(':') {
        // `host:path`, with no slash before the colon; `helper::address` runs a program.
        Some((host, path)) => {
            !host.contains('/')
                && !path.starts_with(':')
                && !path.starts_with("//")
                && host != "file"
        }
        None => false,
    };
    if SCHEMES.iter().any(|scheme| name.starts_with(scheme)) || is_address {
        Repository::Elsewhere
    } else if command != "clone"
        && !name.starts_with(['.', '/'])
        && !name.is_empty()
        && name.chars().all(is_name)
    {
        Repository::Named(name)
    } else {
        Repository::Folder(name)
    }
}

/// Whether a word can only be the address of a repository that is not on another machine.
fn is_local_address(word: &Word) -> bool {
    let head = word.head();
    let helper = head.split_once("::").is_some_and(|(helper, _)| {
        !helper.is_empty() && helper.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    });
    head.starts_with("file://") || (helper && !head.starts_with('-'))
}
