//! Protected names anywhere below a root: nested repositories, submodules, worktrees, other
//! projects' control folders.
//!
//! A mount can only cover what exists. So the tree is searched when a sandbox is made, and again,
//! for a short time, before each command. A folder that has not changed since is not listed again.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::folder_stamp::FolderStamp;
use crate::git_dir::{common_of, is_git_dir, pointed_to};
use crate::gitlink::gitlinks;
use crate::policy::Protected;
use crate::protected_path::replaceable;
use crate::repository::Repository;
use crate::{Guard, Policy, SandboxError};

/// Most entries of a workspace that are searched when a sandbox is made. With more, it is refused:
/// a repository beyond them would be open.
const ENTRIES_MAX: usize = 3_000_000;

/// Most nested paths that are protected. With more, the sandbox is refused.
const NESTED_MAX: usize = 1000;

/// Most folders that are known to hold nothing to protect. Further ones are listed before each command.
const KNOWN_FOLDERS_MAX: usize = 50_000;

/// How long the search before a command may take. It begins at the root, so that repositories far
/// down are those that are missed.
const SEARCH_AGAIN_MAX: Duration = Duration::from_millis(40);

/// A path to protect, found below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nested {
    pub(crate) path: PathBuf,
    pub(crate) guard: Guard,
}

/// Everything below the roots of a resolved policy that has to be protected.
pub(crate) fn nested(policy: &Policy) -> Result<Vec<Nested>, SandboxError> {
    let mut search = Search::new(policy, None);
    for root in &policy.roots {
        search.around(root);
        search.below(root);
    }
    search.complete()
}

/// What has to be protected in the folders of `repository` that are writable and in a root. A
/// command can make every folder look like a git folder, also one that contains other repositories.
pub(crate) fn nested_in(
    policy: &Policy,
    repository: &Repository,
) -> Result<Vec<Nested>, SandboxError> {
    let mut search = Search::new(policy, None);
    for folder in &repository.writable {
        if policy.roots.iter().any(|root| folder.path.starts_with(root)) {
            search.below(&folder.path);
        }
    }
    search.complete()
}

/// Folders with nothing to protect, as they were listed: when they were last changed, and the folders in them.
#[derive(Debug, Default)]
pub(crate) struct KnownFolders(HashMap<PathBuf, (FolderStamp, Box<[OsString]>)>);

/// A protected path below the roots that `is_known` does not know, if one is found in time. `folders` are those of the
/// search before.
pub(crate) fn appeared(
    policy: &Policy,
    folders: &mut KnownFolders,
    now: SystemTime,
    is_known: impl Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let mut search = Search::new(policy, Some(Instant::now() + SEARCH_AGAIN_MAX));
    search.known = Some((folders, now));
    for root in &policy.roots {
        search.around(root);
        search.below(root);
    }
    let is_open = |nested: &Nested| policy.mode.writes_roots() || nested.guard == Guard::Hidden;
    let paths = search.found.into_iter().filter(is_open).map(|nested| nested.path);
    paths.into_iter().find(|path| !is_known(path) && path.symlink_metadata().is_ok())
}

struct Search<'a> {
    policy: &'a Policy,
    until: Option<Instant>,
    /// Folders that were listed before, and what time it is.
    known: Option<(&'a mut KnownFolders, SystemTime)>,
    entries: usize,
    found: Vec<Nested>,
    /// A protected name that is a symbolic link: it could be replaced.
    link: Option<PathBuf>,
}

impl<'a> Search<'a> {
    fn new(policy: &'a Policy, until: Option<Instant>) -> Self {
        Self { policy, until, known: None, entries: 0, found: Vec::new(), link: None }
    }

    /// What was found, if all of it was.
    fn complete(self) -> Result<Vec<Nested>, SandboxError> {
        let too_many = |what: &str, most: usize| SandboxError::Failed {
            step: "protect the repositories in the workspace".to_owned(),
            reason: format!("it has more than {most} {what}: choose a smaller folder to work in"),
        };
        if self.entries > ENTRIES_MAX {
            return Err(too_many("files and folders", ENTRIES_MAX));
        }
        if self.found.len() > NESTED_MAX {
            return Err(too_many("repositories", NESTED_MAX));
        }
        match self.link {
            Some(path) if self.policy.mode.writes_roots() => Err(replaceable(path)),
            Some(_) | None => Ok(self.found),
        }
    }

    /// The repository that `root` is in lists submodules too.
    fn around(&mut self, root: &Path) {
        let mut above = root.ancestors().skip(1);
        if let Some(top) = above.find(|folder| folder.join(".git").symlink_metadata().is_ok()) {
            self.submodules(top);
        }
    }

    /// Folders of submodules that are no repositories yet. Git enters them once they are.
    fn submodules(&mut self, work_tree: &Path) {
        for folder in gitlinks(work_tree) {
            let is_below = self.policy.roots.iter().any(|root| folder.starts_with(root));
            if is_below && folder.join(".git").symlink_metadata().is_err() {
                self.add(folder, Guard::ReadOnly);
            }
        }
    }

    fn below(&mut self, root: &Path) {
        let mut folders = VecDeque::from([root.to_owned()]);
        while let Some(folder) = folders.pop_front() {
            if self.is_over() {
                return;
            }
            // Before the list: what is made meanwhile changes the folder again.
            let stamp = self.known.as_ref().and_then(|(_, now)| FolderStamp::of(&folder, *now));
            if let Some(inside) = self.unchanged(&folder, stamp) {
                let before = folders.len();
                folders.extend(inside.iter().map(|name| folder.join(name)));
                self.entries += folders.len() - before;
                continue;
            }
            // What cannot be listed cannot be listed inside either.
            let Ok(entries) = list(&folder) else { continue };
            self.entries += entries.len();
            let is_git = is_git_dir(entries.iter().map(|(name, _)| name.as_os_str()));
            if is_git && folder != root {
                self.add(folder, Guard::ReadOnly);
                continue;
            }
            let (mut inside, mut is_quiet) = (Vec::new(), !is_git);
            for (name, kind) in entries {
                let path = folder.join(&name);
                match self.protected(&name) {
                    Some(guard) => {
                        is_quiet = false;
                        self.named(path, guard, kind);
                    }
                    // The workspace itself is a bare repository.
                    None if is_git && PROGRAMS.iter().any(|program| name == *program) => {
                        self.add(path, Guard::ReadOnly);
                    }
                    None if kind.is_dir() && !self.policy.hidden.contains(&path) => {
                        folders.push_back(path);
                        inside.push(name);
                    }
                    None => {}
                }
            }
            if is_quiet {
                self.note(folder, stamp, inside);
            }
        }
    }

    /// The folders in a folder that held nothing to protect and has not changed since.
    fn unchanged(&self, folder: &Path, stamp: Option<FolderStamp>) -> Option<&[OsString]> {
        let (listed, inside) = self.known.as_ref()?.0.0.get(folder)?;
        (stamp == Some(*listed)).then_some(inside)
    }

    fn note(&mut self, folder: PathBuf, stamp: Option<FolderStamp>, inside: Vec<OsString>) {
        let (Some((known, _)), Some(stamp)) = (&mut self.known, stamp) else { return };
        if known.0.len() < KNOWN_FOLDERS_MAX || known.0.contains_key(&folder) {
            known.0.insert(folder, (stamp, inside.into()));
        }
    }

    fn is_over(&self) -> bool {
        self.entries > ENTRIES_MAX
            || self.found.len() > NESTED_MAX
            || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Ignores case, because some file systems do.
    fn protected(&self, name: &OsStr) -> Option<Guard> {
        let named = |protected: &&Protected| name.eq_ignore_ascii_case(&protected.name);
        self.policy.protected.iter().find(named).map(|protected| protected.guard)
    }

    fn named(&mut self, path: PathBuf, guard: Guard, kind: FileType) {
        if kind.is_symlink() {
            // What it leads to cannot be changed either.
            if let Ok(real) = path.canonicalize() {
                self.add_within(real, guard);
            }
            self.link.get_or_insert(path);
            return;
        }
        if kind.is_file()
            && let Some(git_dir) = pointed_to(&path)
        {
            if let Some(common) = common_of(&git_dir) {
                self.add_within(common, guard);
            }
            self.add_within(git_dir, guard);
        }
        if path.file_name().is_some_and(|name| name == ".git")
            && let Some(work_tree) = path.parent()
        {
            self.submodules(work_tree);
        }
        self.add(path, guard);
    }

    /// Outside of the roots nothing can be written.
    fn add_within(&mut self, path: PathBuf, guard: Guard) {
        let below = |root: &PathBuf| path.starts_with(root) && path != *root;
        if self.policy.roots.iter().any(below) && path.symlink_metadata().is_ok() {
            self.add(path, guard);
        }
    }

    fn add(&mut self, path: PathBuf, guard: Guard) {
        self.found.push(Nested { path, guard });
    }
}

fn list(folder: &Path) -> std::io::Result<Vec<(OsString, FileType)>> {
    #[cfg(test)]
    tests::count_list();
    let entries = std::fs::read_dir(folder)?.flatten();
    Ok(entries.filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?))).collect())
}

/// Names in a git folder that decide which programs git runs, or where it looks for that.
pub(crate) const PROGRAMS: [&str; 9] = [
    "config",
    "config.worktree",
    "commondir",
    "hooks",
    "info",
    "modules",
    "worktrees",
    "remotes",
    "branches",
];

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;

    use super::*;
    use crate::folder_stamp::later;
    use crate::{Limits, Network, SandboxMode, UnixSockets};

    fn policy(root: &Path) -> Policy {
        Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.canonicalize().unwrap()],
            protected: Protected::usual(),
            hidden: Vec::new(),
            tmp: std::env::temp_dir(),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            repository: None,
            git_programs: crate::GitPrograms::GitOnly,
            runs: crate::Runs::Commands,
            limits: Limits::default(),
        }
    }

    fn paths(policy: &Policy) -> Vec<PathBuf> {
        let root = &policy.roots[0];
        let mut paths: Vec<_> = nested(policy)
            .unwrap()
            .into_iter()
            .map(|nested| nested.path.strip_prefix(root).unwrap().to_owned())
            .collect();
        paths.sort();
        paths.dedup();
        paths
    }

    #[test]
    fn repositories_of_every_form_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for made in [
            ".git/modules/sub",
            "a/b/c/.git/hooks",
            "a/.antiphon",
            "sub",
            "store.git/objects",
            "store.git/refs",
            "elsewhere",
            "apart",
        ] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::write(root.join("sub/.git"), "gitdir: ../.git/modules/sub\n").unwrap();
        fs::write(root.join("store.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(root.join("apart/.git"), "gitdir: ../elsewhere\n").unwrap();
        let expected = [
            ".git",
            ".git/modules/sub",
            "a/.antiphon",
            "a/b/c/.git",
            "apart/.git",
            "elsewhere",
            "store.git",
            "sub/.git",
        ];
        assert_eq!(paths(&policy(root)), expected.map(PathBuf::from));
    }

    #[test]
    fn a_link_in_place_of_one_is_refused_where_commands_could_replace_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for made in ["sub", "store", "other/.antiphon"] {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        std::os::unix::fs::symlink("../store", root.join("sub/.git")).unwrap();
        let workspace = policy(&root);
        let refused = nested(&workspace).unwrap_err();
        assert!(
            matches!(&refused, SandboxError::Unprotectable { path, .. } if *path == root.join("sub/.git")),
            "{refused}"
        );
        let reading = Policy { mode: SandboxMode::ReadOnly, ..workspace };
        assert_eq!(paths(&reading), ["other/.antiphon", "store"].map(PathBuf::from));
    }

    thread_local! {
        static LISTS: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count_list() {
        LISTS.set(LISTS.get() + 1);
    }

    #[test]
    fn one_that_appears_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (policy, mut known) = (policy(folder.path()), KnownFolders::default());
        assert_eq!(appeared(&policy, &mut known, later(), |_| false), None);
        let git = policy.roots[0].join("x/.GIT");
        fs::create_dir_all(&git).unwrap();
        assert_eq!(appeared(&policy, &mut known, later(), |_| false), Some(git));
        assert_eq!(appeared(&policy, &mut known, later(), |_| true), None);
    }

    #[test]
    fn only_folders_that_changed_are_listed_again() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for number in 0..20 {
            fs::create_dir_all(root.join(format!("a/{number}/b/c"))).unwrap();
        }
        fs::create_dir(root.join(".git")).unwrap();
        let (policy, mut known) = (policy(&root), KnownFolders::default());
        let mut lists = |now| {
            LISTS.set(0);
            let found = appeared(&policy, &mut known, now, |path| path == root.join(".git"));
            (LISTS.get(), found)
        };
        let all = 2 + 3 * 20;
        assert_eq!(lists(SystemTime::now()), (all, None));
        assert_eq!(lists(later()), (all, None), "before, all had just changed");
        assert_eq!(lists(later()), (1, None), "the root, where something is protected");
        fs::write(root.join("a/7/b/c/file"), "").unwrap();
        assert_eq!(lists(later()), (2, None));
        fs::create_dir(root.join("a/7/b/d")).unwrap();
        assert_eq!(lists(later()), (3, None), "the folder, and the one that is new in it");
        fs::create_dir(root.join("a/9/b/c/.git")).unwrap();
        let git = Some(root.join("a/9/b/c/.git"));
        assert_eq!(lists(later()), (2, git.clone()));
        assert_eq!(lists(later()), (2, git), "it is found each time");
        fs::remove_dir_all(root.join("a")).unwrap();
        assert_eq!(lists(later()), (1, None));
    }
}
