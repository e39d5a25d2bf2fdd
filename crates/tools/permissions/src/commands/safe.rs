//! Read-only commands: they write nothing, run nothing, and stay in the workspace.

use crate::shell::Word;

/// Whether this command may run without a sandbox.
pub(crate) fn is_safe(words: &[Word]) -> bool {
    let Some(program) = words.first().and_then(Word::literal) else {
        return false;
    };
    let Some((_, refused)) = SAFE.iter().find(|(name, _)| *name == program) else {
        return false;
    };
    let operands = words.iter().skip(1).filter(|word| !word.head().starts_with('-')).count();
    let few = match program {
        // The second operand is a file that the command writes.
        "uniq" => operands <= 1,
        // Without an operand `cd` changes to the home folder.
        "cd" => operands == 1 && words.len() == 2,
        _ => true,
    };
    few && words.iter().skip(1).all(|word| is_harmless(word, refused))
}

/// Whether `name` is a program or a built-in that a function should not replace.
pub(crate) fn is_known(name: &str) -> bool {
    SAFE.iter().any(|(safe, _)| *safe == name) || KNOWN.contains(&name)
}

/// Read-only programs, with the options that make them write or run something.
const SAFE: &[(&str, &[&str])] = &[
    (":", &[]),
    ("true", &[]),
    ("false", &[]),
    ("pwd", &[]),
    ("cd", &[]),
    ("echo", &[]),
    ("printf", &["-v"]),
    ("ls", &[]),
    ("cat", &[]),
    ("head", &[]),
    ("tail", &[]),
    ("wc", &[]),
    ("nl", &[]),
    ("tac", &[]),
    ("rev", &[]),
    ("cut", &[]),
    ("tr", &[]),
    (
        "sort",
        &["-o", "-T", "--output", "--compress-program", "--temporary-directory", "--files0-from"],
    ),
    ("uniq", &[]),
    ("comm", &[]),
    ("cmp", &[]),
    ("diff", &["--output"]),
    ("basename", &[]),
    ("dirname", &[]),
    ("realpath", &[]),
    ("readlink", &[]),
    ("stat", &[]),
    ("du", &["--files0-from"]),
    ("df", &[]),
    ("seq", &[]),
    ("sleep", &[]),
    ("uname", &[]),
    ("whoami", &[]),
    ("id", &[]),
    ("which", &[]),
    ("type", &[]),
    ("grep", &["-f", "--file"]),
    ("egrep", &["-f", "--file"]),
    ("fgrep", &["-f", "--file"]),
    ("rg", &["--pre", "--hostname-bin", "-z", "--search-zip", "-f", "--file"]),
    ("find", &["-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from", "-L", "-follow"]),
];

/// Further known programs that are not read-only.
const KNOWN: &[&str] = &[
    ".",
    "[",
    "alias",
    "apt",
    "awk",
    "bash",
    "builtin",
    "bun",
    "cargo",
    "chmod",
    "chown",
    "command",
    "command_not_found_handle",
    "cp",
    "curl",
    "dash",
    "dd",
    "declare",
    "deno",
    "docker",
    "doas",
    "enable",
    "env",
    "eval",
    "exec",
    "exit",
    "export",
    "git",
    "go",
    "hash",
    "java",
    "kubectl",
    "let",
    "ln",
    "local",
    "make",
    "mkdir",
    "mv",
    "node",
    "nohup",
    "npm",
    "npx",
    "perl",
    "pip",
    "pnpm",
    "popd",
    "pushd",
    "python",
    "python3",
    "read",
    "readonly",
    "return",
    "rm",
    "rmdir",
    "rsync",
    "ruby",
    "rustc",
    "scp",
    "sed",
    "set",
    "sh",
    "shift",
    "shopt",
    "source",
    "ssh",
    "sudo",
    "tar",
    "tee",
    "test",
    "time",
    "timeout",
    "touch",
    "trap",
    "typeset",
    "umask",
    "unset",
    "uv",
    "wait",
    "wget",
    "xargs",
    "yarn",
    "zsh",
];

fn is_harmless(word: &Word, refused: &[&str]) -> bool {
    // File patterns expand inside the workspace; any other expansion may lead outside.
    let expands = word.raw().contains(['$', '`', '~', '{', '<', '>']) || word.raw() == "…";
    let text = word.literal().unwrap_or(word.raw());
    let (name, value) = text.split_once('=').unwrap_or((text, text));
    let away = |path: &str| path.starts_with('/') || path.split('/').any(|part| part == "..");
    let option = |option: &&str| {
        if option.starts_with("--") {
            // Programs accept abbreviated options.
            text.starts_with(option) || (name.len() > 2 && option.starts_with(name))
        } else if option.len() == 2 {
            text.starts_with('-') && !text.starts_with("--") && text.contains(&option[1..])
        } else {
            text.starts_with(option)
        }
    };
    if away(text) || away(value) || refused.iter().any(option) {
        return false;
    }
    word.literal().is_some() || !expands
}
