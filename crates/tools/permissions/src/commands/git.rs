//! `git`, whose options precede its command and may run anything.

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

/// Commands that git runs itself, such as `bisect run`.
fn nested(rest: &[Word], analysis: &mut Analysis) {
    let Some(command) = rest.first().and_then(Word::literal) else { return };
    let options = &rest[1..];
    let mut run = |script: Option<&Word>| match script.and_then(Word::literal) {
        Some(text) => analysis.nested.push(Nested::Script(text.to_owned(), Some(Dialect::Posix))),
        None => analysis.warnings.push(Warning::opaque(format!("`git {command}` runs a command"))),
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
    let mut changes_folder_inside = false;
    match (command, options.first().and_then(Word::literal)) {
        ("bisect", Some("run")) => analysis.nested.push(Nested::Command(options[1..].to_vec())),
        ("submodule", Some("foreach")) => {
            changes_folder_inside = true;
            let script = options.iter().skip(1).find(|word| !word.head().starts_with('-'));
            run(script);
        }
        ("filter-branch", _) => run(None),
        _ => {}
    }
    analysis.changes_folder_inside |= changes_folder_inside;
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
        analysis
            .warnings
            .push(Warning::suspicious(format!("`git {command} {text}` may run anything")));
    }
    let values = options.iter().filter(|word| !word.head().starts_with('-')).count();
    if command == "config" && values > 1 {
        analysis.warnings.push(Warning::risky("`git config` can change what git runs"));
    }
}
