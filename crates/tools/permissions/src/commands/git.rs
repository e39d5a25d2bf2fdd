//! `git`, whose options stand before its command and may run anything.

use super::{Doubt, Inside, Look};
use crate::shell::{Dialect, Word};

pub(super) fn look(words: &[Word]) -> Look {
    let mut look = Look::default();
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
                at += 1;
            }
            "-c" | "--config-env" | "--exec-path" | "--git-dir" | "--work-tree" | "--namespace"
            | "--super-prefix" | "--attr-source" => {
                look.doubts.push(Doubt::odd(format!("`git {option}` may run anything")));
                // With `=` it is one word; without, the value follows. `--exec-path` alone prints.
                at += usize::from(option != "--exec-path");
            }
            "--version" | "--help" | "-v" | "-h" | "--html-path" | "--man-path" | "--info-path" => {
                return look;
            }
            _ => look.doubts.push(Doubt::odd(format!("`git {option}` may run anything"))),
        }
    }
    let rest = words.get(at..).unwrap_or_default();
    if at == 1 {
        inside(rest, &mut look);
    } else if !rest.is_empty() {
        // Rules are written for `git push`, not for `git --no-pager push`.
        let mut plain = vec![Word::known("git")];
        plain.extend_from_slice(rest);
        look.inside.push(Inside::Command(plain));
        look.wraps = harmless && look.doubts.is_empty();
    }
    look
}

fn is_below(folder: &str) -> bool {
    !folder.starts_with(['/', '~']) && !folder.split('/').any(|part| part == "..")
}

/// Commands that git is told to run.
fn inside(rest: &[Word], look: &mut Look) {
    let Some(command) = rest.first().and_then(Word::literal) else { return };
    let options = &rest[1..];
    let mut run = |script: Option<&Word>| match script.and_then(Word::literal) {
        Some(text) => look.inside.push(Inside::Script(text.to_owned(), Some(Dialect::Posix))),
        None => look.doubts.push(Doubt::opaque(format!("`git {command}` runs a command"))),
    };
    for (at, word) in options.iter().enumerate() {
        let Some(text) = word.literal() else { continue };
        let value = options.get(at + 1);
        match (command, text) {
            ("rebase", "-x" | "--exec") | ("difftool", "-x" | "--extcmd") => run(value),
            ("rebase", _) if text.starts_with("--exec=") => {
                run(Some(&Word::known(&text["--exec=".len()..])));
            }
            _ => {}
        }
    }
    let mut elsewhere = false;
    match (command, options.first().and_then(Word::literal)) {
        ("bisect", Some("run")) => look.inside.push(Inside::Command(options[1..].to_vec())),
        ("submodule", Some("foreach")) => {
            elsewhere = true;
            let script = options.iter().skip(1).find(|word| !word.head().starts_with('-'));
            run(script);
        }
        ("filter-branch", _) => run(None),
        _ => {}
    }
    look.elsewhere |= elsewhere;
    let runs = |text: &str| {
        let name = text.split('=').next().unwrap_or_default();
        text.starts_with("ext::")
            || matches!(name, "--upload-pack" | "--receive-pack" | "--extcmd" | "--template")
            || matches!(name, "--open-files-in-pager")
            || (matches!(command, "push" | "archive") && name == "--exec")
            || (command == "grep" && text.starts_with("-O"))
            || (command == "clone" && matches!(text, "-u" | "-c" | "--config"))
    };
    if let Some(text) = options.iter().filter_map(Word::literal).find(|text| runs(text)) {
        look.doubts.push(Doubt::odd(format!("`git {command} {text}` may run anything")));
    }
    let values = options.iter().filter(|word| !word.head().starts_with('-')).count();
    if command == "config" && values > 1 {
        look.doubts.push(Doubt::risky("`git config` can change what git runs"));
    }
}
