//! Ignore rules from `.ignore`, `.gitignore` and `.git/info/exclude`.
//!
//! Ripgrep's matcher evaluates the rules. This module reads the files, because a repository may be
//! hostile: it skips a rule file that is a link or a pipe and truncates a long one. Above the
//! working folder, only the rules of its repository apply.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

use super::folder::{Folder, Kind};
use super::path::RelPath;

/// Most bytes of a rule file that are read.
pub(crate) const RULE_FILE_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of rules that are held at one time, by the folders that are being searched: compiled,
/// they take hundreds of times as much.
pub(crate) const RULES_BYTES_MAX: usize = 256 * 1024;

/// Longest rule; longer ones are skipped.
pub(crate) const RULE_BYTES_MAX: usize = 1000;

/// How far up a repository may begin.
const FOLDERS_ABOVE_MAX: usize = 64;

const IGNORE: &CStr = c".ignore";
const GITIGNORE: &CStr = c".gitignore";
const GIT: &CStr = c".git";
const GIT_NAME: &str = ".git";

/// Memory budget for rules. Rules that exceed it are not read.
#[derive(Debug, Default)]
pub(crate) struct RuleBudget {
    reserved_bytes: AtomicUsize,
    was_exceeded: AtomicBool,
}

/// The rules of a folder and of those above it.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// The folder is the root of a repository: git rules of parent folders do not apply.
    is_repository: bool,
    /// The part of the budget these rules use.
    _reserved: ReservedBytes,
}

/// Result of the rules for a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ignored,
    /// Not ignored, explicitly.
    Wanted,
    Silent,
}

/// Which files that matter for rules a folder has.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RuleFiles {
    ignore: bool,
    gitignore: bool,
    git: bool,
}

impl RuleFiles {
    /// Records an entry of the folder.
    pub(crate) fn note(&mut self, name: &CStr) {
        self.ignore |= name == IGNORE;
        self.gitignore |= name == GITIGNORE;
        self.git |= name == GIT;
    }

    /// Checks for rule files in a folder that is not listed.
    fn find(folder: &Folder) -> Self {
        let has = |name| folder.kind(name).is_ok();
        Self { ignore: has(IGNORE), gitignore: has(GITIGNORE), git: has(GIT) }
    }
}

impl RuleBudget {
    /// Whether there were rules that did not fit.
    pub(crate) fn was_exceeded(&self) -> bool {
        self.was_exceeded.load(Ordering::Relaxed)
    }

    /// Reads a rule file as far as there is room.
    fn read(&self, file: Option<File>, reserved: &mut ReservedBytes) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        file?.take(RULE_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() > RULE_FILE_BYTES_MAX {
            self.was_exceeded.store(true, Ordering::Relaxed);
            // A truncated rule could ignore everything.
            let whole = bytes[..RULE_FILE_BYTES_MAX].iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(whole.unwrap_or(0));
        }
        let before = self.reserved_bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        reserved.bytes += bytes.len();
        if before + bytes.len() > RULES_BYTES_MAX {
            self.was_exceeded.store(true, Ordering::Relaxed);
            return None;
        }
        Some(bytes)
    }
}

#[derive(Debug)]
struct ReservedBytes {
    budget: Arc<RuleBudget>,
    bytes: usize,
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.budget.reserved_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Rules {
    /// The rules that hold in a folder: its own, and those above.
    pub(crate) fn enter(
        above: Option<Arc<Self>>,
        folder: &Folder,
        path: &RelPath,
        files: RuleFiles,
        budget: &Arc<RuleBudget>,
    ) -> Option<Arc<Self>> {
        if !files.ignore && !files.gitignore && !files.git {
            return above;
        }
        let mut reserved = ReservedBytes { budget: Arc::clone(budget), bytes: 0 };
        let mut rules = |has: bool, name: &CStr| {
            let file = if has { folder.file_at(name.to_bytes()).ok().flatten() } else { None };
            let bytes = budget.read(file, &mut reserved);
            bytes.map_or_else(Gitignore::empty, |bytes| parse(path, &bytes))
        };
        Some(Arc::new(Self {
            ignore: rules(files.ignore, IGNORE),
            gitignore: rules(files.gitignore, GITIGNORE),
            exclude: rules(files.git, c".git/info/exclude"),
            is_repository: files.git,
            above,
            _reserved: reserved,
        }))
    }

    /// The rules from above `start`, and its path from where they begin: from `base` on, or from
    /// where the repository that `base` lies in begins.
    pub(crate) fn above(
        start: &Path,
        base: &Path,
        budget: &Arc<RuleBudget>,
    ) -> (RelPath, Option<Arc<Self>>) {
        let is_repository = |path: &Path| path.join(GIT_NAME).symlink_metadata().is_ok();
        let mut above = base.ancestors().take(FOLDERS_ABOVE_MAX);
        let begin = above.find(|path| is_repository(path)).unwrap_or(base);
        let Ok(way) = start.strip_prefix(begin) else {
            return (RelPath::default(), None);
        };
        let mut here = begin.to_owned();
        let (mut path, mut rules) = (RelPath::default(), None);
        for part in way.components() {
            if let Ok(folder) = Folder::open(&here) {
                rules = Self::enter(rules, &folder, &path, RuleFiles::find(&folder), budget);
            }
            here.push(part);
            path = path.join(part.as_os_str().as_encoded_bytes());
        }
        (path, rules)
    }

    /// Evaluates the rules. The nearest rule that matches decides, `.ignore` before git.
    pub(crate) fn verdict(&self, path: &Path, kind: Kind) -> Verdict {
        let is_folder = kind == Kind::Folder;
        let asks = |verdict: Match<()>, rules: &Gitignore| match verdict {
            Match::None => rules.matched(path, is_folder).map(drop::<&Glob>),
            decided @ (Match::Ignore(()) | Match::Whitelist(())) => decided,
        };
        let (mut ignore, mut gitignore, mut exclude) = (Match::None, Match::None, Match::None);
        let mut same_repository = true;
        let mut here = Some(self);
        while let Some(rules) = here {
            ignore = asks(ignore, &rules.ignore);
            if same_repository {
                gitignore = asks(gitignore, &rules.gitignore);
                exclude = asks(exclude, &rules.exclude);
            }
            same_repository &= !rules.is_repository;
            here = rules.above.as_deref();
        }
        match ignore.or(gitignore).or(exclude) {
            Match::None => Verdict::Silent,
            Match::Ignore(()) => Verdict::Ignored,
            Match::Whitelist(()) => Verdict::Wanted,
        }
    }
}

/// Parses a rule file. Skips invalid rules, like git.
fn parse(path: &RelPath, bytes: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(path.as_path());
    let text = String::from_utf8_lossy(bytes);
    let rules = text.trim_start_matches('\u{feff}').lines();
    for rule in rules.filter(|rule| rule.len() <= RULE_BYTES_MAX) {
        let _ = builder.add_line(None, rule);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
