//! Scripts that change a repository and do nothing else.
//!
//! Such a script runs in a sandbox that lets git write objects, the index, references and logs. It
//! must not run anything but git: another program in that sandbox could damage the repository.

use crate::commands::{
    Command, File, Item, Role, StartFolder, analyze, is_safe, is_text, program_name,
};
use crate::normalized_path::NormalizedPath;
use crate::shell::Word;

/// Commands of git that write to a repository.
const WRITES: [&str; 20] = [
    "add",
    "bisect",
    "branch",
    "checkout",
    "cherry-pick",
    "commit",
    "fetch",
    "merge",
    "mv",
    "notes",
    "pull",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stage",
    "stash",
    "switch",
    "tag",
];

/// Commands of git that only read, often beside those that write.
const READS: [&str; 14] = [
    "blame",
    "describe",
    "diff",
    "log",
    "ls-files",
    "ls-tree",
    "merge-base",
    "name-rev",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
];

/// Whether a script for bash changes a repository and does nothing else. The gate asks about such a
/// script, and then it may write to the repository.
pub fn changes_repository(script: &str) -> bool {
    only_git(&analyze(script, StartFolder::In("")))
}

pub(crate) fn only_git(items: &[Item]) -> bool {
    let mut writes = false;
    for item in items {
        match item {
            Item::Command(command) => match kind(command) {
                Some(Kind::Writes) => writes = true,
                Some(Kind::Reads) => {}
                None => return false,
            },
            Item::File(file) if is_harmless(file) => {}
            Item::File(_) | Item::Function(_) | Item::Warning(_) => return false,
        }
    }
    writes
}

enum Kind {
    Writes,
    Reads,
}

/// `None` for a command that has no place in such a script.
fn kind(command: &Command) -> Option<Kind> {
    let words = &command.words;
    if !command.warnings.is_empty() {
        return None;
    }
    let is_git = words.first().and_then(Word::literal) == Some("git");
    match command.role {
        // `git -C folder` and the like: what it runs is an item of its own.
        Role::Wrapper if is_git => Some(Kind::Reads),
        Role::Wrapper => None,
        Role::Program if is_git => git(words),
        Role::Program => is_safe(words).then_some(Kind::Reads),
    }
}

fn git(words: &[Word]) -> Option<Kind> {
    let name = words.get(1).and_then(Word::literal)?;
    let written_out = |(at, word): (usize, &Word)| {
        let is_operand = !word.head().is_empty() && !word.head().starts_with('-');
        let is_message = at > 0 && is_text(&words[1..], at - 1);
        word.literal().is_some() || (!word.splits() && (is_operand || is_message))
    };
    // `--output` and its abbreviations write to any file.
    let writes_file = |word: &Word| {
        let option = word.head().split('=').next().unwrap_or_default();
        option.len() > 2 && "--output-directory".starts_with(option)
    };
    if !words.iter().enumerate().all(written_out) || words.iter().any(writes_file) {
        return None;
    }
    if READS.contains(&name) {
        Some(Kind::Reads)
    } else {
        WRITES.contains(&name).then_some(Kind::Writes)
    }
}

fn is_harmless(file: &File) -> bool {
    !file.writes
        || file.path.literal().is_some_and(|path| NormalizedPath::of("/", "", path).is_stream())
}

/// Whether this is a command of git that writes to a repository.
pub(crate) fn is_change(words: &[Word]) -> bool {
    words.first().and_then(program_name) == Some("git")
        && words.get(1).and_then(Word::literal).is_some_and(|name| WRITES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_git_alone_are_recognized() {
        for script in [
            "git add -A",
            "git add . && git commit -m 'a message'",
            "git commit -m \"$(cat message)\"",
            "git commit -am \"it is $done\"",
            "git add a && git -c user.name=a -c User.Email=a@b -c commit.gpgsign=false commit -m x",
            "git switch -c topic 2>/dev/null; git status --short",
            "cd sub && git stash && git log --oneline | head -3",
            "git commit -F - <<'END'\na message\nEND",
            "git --no-pager branch -d old",
        ] {
            assert!(changes_repository(script), "{script}");
        }
    }

    #[test]
    fn anything_else_has_no_place_beside_git() {
        for script in [
            "git status",
            "ls",
            "git commit -m x; ./script",
            "git commit -m x && make",
            "git -c core.hooksPath=x commit -m x",
            "git -c commit.gpgsign=true commit -m x",
            "git -c user.name=a -c core.editor=x commit",
            "git -c user.name commit -m x",
            "GIT_CONFIG_COUNT=0 git commit -m x",
            "PATH=. git commit -m x",
            "env git commit -m x",
            "./git commit -m x",
            "/usr/bin/git commit -m x",
            "git commit -m x > .git/commondir",
            "git log -1 --format=%s --output=.git/commondir; git add x",
            "git stash show -p --outp=.git/commondir",
            "git add $FILES",
            "git commit \"$OPTION\"",
            "git -C sub commit -m x",
            "git --git-dir=x commit -m x",
            "git --config-env=core.editor=X commit",
            "git rebase -x ./script main",
            "git rebase -x 'git status' main",
            "git rebase -m \"$OPTION\"",
            "git fetch -m \"$OPTION\"",
            "git rebase '-xgit status' main",
            "git rebase -ix 'git status' main",
            "git rebase --exe='git status' main",
            "git rebase --e 'git status' main",
            "git fetch --upload-pac='git status' .",
            "git pull --upl 'git status' origin",
            "git fetch ./evil",
            "git fetch file:///evil",
            "git fetch ext::sh",
            "git fetch --recurse-sub",
            "git add . && git log --ext-diff -p",
            "git add . && git log --textc -p",
            "git add . && git grep -Oless x",
            "git add . && git difftool",
            "git add . && git submodule foreach 'git status'",
            "git bisect run git status",
            "TERMINFO=x git commit -m x",
            "git bisect run ./script",
            "git config core.fsmonitor evil; git add x",
            "git update-ref commondir HEAD; git add x",
            "git worktree add x",
            "git submodule update; git add .",
            "git() { ./evil; }; git commit -m x",
            "alias git=./evil; git commit -m x",
            "eval git commit",
            "sh -c 'git commit -m x'",
            "git commit -m x | tee .git/commondir",
            "git commit -m \"$(./script)\"",
            "cp x .git/commondir; git add y",
        ] {
            assert!(!changes_repository(script), "{script}");
        }
    }
}
