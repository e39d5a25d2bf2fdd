//! The repository that commands may change, in a sandbox made for git commands.
//!
//! Git may write objects, the index, references and logs. What decides which programs git runs
//! ([`PROGRAMS`]) stays read-only; where one of these names is missing, a placeholder is there while
//! the sandbox exists, so that it cannot be created.
//!
//! Which repository that is must not be for a command to say. Its folders are in the workspace; or
//! they belong to a repository outside that itself lists the worktree in the workspace. They are
//! opened without following a link, and both processes of the sandbox compare what they opened.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, OFlags, fstat, statat};

use crate::git_dir::{belongs_to, common_of, is_git_dir, pointed_from};
use crate::nested::PROGRAMS;
use crate::pinned_folder::{PinnedFolder, open_below};
use crate::protected_path::within;
use crate::real_paths::RealPaths;
use crate::{Policy, SandboxError};

/// The environment variable in which the first process names for the second which folders of a
/// repository it opened. Commands need not have it.
pub const OPENED: &str = "ANTIPHON_OPENED";

/// Parts of the shared folder of worktrees that git writes.
const SHARED: [&str; 4] = ["objects", "refs", "logs", "reftable"];

/// Longest `.git` file that is read, in bytes.
const POINTER_BYTES_MAX: u64 = 8192;

/// A repository that commands may change.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The root that has the work tree.
    pub(crate) root: PathBuf,
    /// The folder with `.git`.
    pub(crate) work_tree: PathBuf,
    /// Folders that are writable: the git folder first, then parts of the one that worktrees share.
    pub(crate) writable: Vec<PinnedFolder>,
    /// Names in the git folder that stay read-only.
    pub(crate) kept: Vec<&'static str>,
}

impl Policy {
    /// Why git may not change the repository of this policy. `None` if it may, or if the policy
    /// names no repository.
    pub fn repository_refusal(&self) -> Option<SandboxError> {
        self.resolved().and_then(|policy| Repository::of(&policy)).err()
    }
}

impl Repository {
    /// The repository of `policy`, which is resolved. `None` if the policy opens none.
    pub(crate) fn of(policy: &Policy) -> Result<Option<Self>, SandboxError> {
        let Some(folder) = policy.repository.as_ref().filter(|_| policy.mode.writes_roots()) else {
            return Ok(None);
        };
        let found = within(&policy.roots, folder, &mut RealPaths::default())
            .map(|(root, rest)| (root, root.join(rest)));
        let (root, folder) =
            found.ok_or_else(|| refused(folder, "it is outside of the workspace"))?;
        let dot_git = folder
            .ancestors()
            .take_while(|above| above.starts_with(root))
            .map(|above| above.join(".git"))
            .find(|git| git.symlink_metadata().is_ok())
            .ok_or_else(|| refused(&folder, "there is no repository here"))?;
        let entry = open_below(root, &dot_git, OFlags::PATH);
        let kind = entry.and_then(|entry| Ok(FileType::from_raw_mode(fstat(entry)?.st_mode)));
        let git_dir = match kind {
            Ok(FileType::Directory) => dot_git.clone(),
            Ok(FileType::RegularFile) => pointer(root, &dot_git)
                .ok_or_else(|| refused(&dot_git, "it names no repository"))?,
            Ok(_) | Err(_) => return Err(refused(&dot_git, "a link leads to it")),
        };
        let mut repository = match root_of(policy, &git_dir) {
            Some(base) => Self::inside(policy, base, git_dir)?,
            None => Self::outside(policy, git_dir, &dot_git)?,
        };
        root.clone_into(&mut repository.root);
        dot_git.parent().unwrap_or(root).clone_into(&mut repository.work_tree);
        Ok(Some(repository))
    }

    /// A repository in the workspace. A command may have written every file of it.
    fn inside(policy: &Policy, base: &Path, git_dir: PathBuf) -> Result<Self, SandboxError> {
        let common = common_of(&git_dir).filter(|common| *common != git_dir);
        let mut repository = Self::at(policy, base, git_dir)?;
        if let Some(common) = common {
            let base = root_of(policy, &common).ok_or_else(|| {
                let reason = "it is outside of the workspace, and only a file in the workspace \
                              names it";
                refused(&common, reason)
            })?;
            repository.share(policy, base, &common)?;
        }
        Ok(repository)
    }

    /// A repository outside of the workspace, if it lists `dot_git` as one of its worktrees: then
    /// git made the worktree there. A folder elsewhere may have come with a clone, and name any
    /// repository as the one that it shares.
    fn outside(policy: &Policy, git_dir: PathBuf, dot_git: &Path) -> Result<Self, SandboxError> {
        let worktrees = git_dir.parent().filter(|above| above.ends_with("worktrees"));
        let common = worktrees.and_then(Path::parent).map(Path::to_owned);
        let common = common.filter(|common| common_of(&git_dir).as_ref() == Some(common));
        let common = common.filter(|_| belongs_to(&git_dir, dot_git)).ok_or_else(|| {
            let reason = "the repository that it names is outside of the workspace and does not \
                          list it as a worktree. Run `git worktree repair`";
            refused(dot_git, reason)
        })?;
        let mut repository = Self::at(policy, Path::new("/"), git_dir)?;
        repository.share(policy, Path::new("/"), &common)?;
        Ok(repository)
    }

    fn at(policy: &Policy, base: &Path, git_dir: PathBuf) -> Result<Self, SandboxError> {
        check_place(policy, base, &git_dir)?;
        let no_repository = |_| refused(&git_dir, "it is not a repository, or a link leads to it");
        let opened = PinnedFolder::open(base, git_dir.clone()).map_err(no_repository)?;
        let names = names(&opened.fd).map_err(no_repository)?;
        if !is_git_dir(names.iter().map(std::ffi::OsString::as_os_str)) {
            return Err(no_repository(std::io::ErrorKind::NotFound.into()));
        }
        let is_link = |name: &&&str| {
            statat(&opened.fd, **name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
        };
        if let Some(name) = PROGRAMS.iter().find(is_link) {
            let reason = "it is a symbolic link, which git could replace";
            return Err(refused(&git_dir.join(name), reason));
        }
        Ok(Self {
            root: base.to_owned(),
            work_tree: git_dir.clone(),
            writable: vec![opened],
            kept: PROGRAMS.to_vec(),
        })
    }

    fn share(&mut self, policy: &Policy, base: &Path, common: &Path) -> Result<(), SandboxError> {
        check_place(policy, base, common)?;
        self.kept.push("gitdir");
        for path in SHARED.iter().map(|name| common.join(name)) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            let opened = PinnedFolder::open(base, path.clone());
            self.writable.push(opened.map_err(|_| refused(&path, "a link leads to it"))?);
        }
        Ok(())
    }

    /// Paths that stay read-only, though they are in a writable folder.
    pub(crate) fn kept_paths(&self) -> Vec<PathBuf> {
        let git_dir = self.writable.first();
        self.kept.iter().filter_map(|name| Some(git_dir?.path.join(name))).collect()
    }

    /// Whether `path` is one of the writable folders.
    pub(crate) fn opens(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| folder.path == path)
    }

    /// The identities of the writable folders, as a text.
    pub(crate) fn identities(&self) -> String {
        let identities = self.writable.iter().map(|folder| folder.identity.to_string());
        identities.collect::<Vec<_>>().join(",")
    }

    /// Fails unless the process that started this one opened the same folders.
    pub(crate) fn check_identities(&self) -> Result<(), SandboxError> {
        if std::env::var(OPENED).is_ok_and(|opened| opened == self.identities()) {
            return Ok(());
        }
        let path = self.writable.first().map(|folder| folder.path.clone()).unwrap_or_default();
        Err(refused(&path, "it was replaced meanwhile. Try again"))
    }

    /// Text of a file that stands in for a missing path of `kept`; `None` if a folder does. The file
    /// that names the shared folder names the git folder itself.
    pub(crate) fn placeholder_text(path: &Path) -> Option<&'static [u8]> {
        match path.file_name()?.to_str()? {
            "commondir" => Some(b".\n"),
            "config" | "config.worktree" | "gitdir" => Some(b""),
            _ => None,
        }
    }
}

fn refused(path: &Path, reason: &str) -> SandboxError {
    SandboxError::Unprotectable { path: path.to_owned(), reason: reason.to_owned() }
}

/// The innermost root that contains `path`, which has no links.
fn root_of<'a>(policy: &'a Policy, path: &Path) -> Option<&'a Path> {
    path.ancestors()
        .find_map(|above| policy.roots.iter().find(|root| *root == above).map(PathBuf::as_path))
}

/// The folder that the file `dot_git` names.
fn pointer(root: &Path, dot_git: &Path) -> Option<PathBuf> {
    let file = fs::File::from(open_below(root, dot_git, OFlags::RDONLY).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(POINTER_BYTES_MAX).read_to_end(&mut text).ok()?;
    pointed_from(dot_git, &text)
}

/// Refuses folders that are protected for another reason than being a repository, and folders in a
/// repository that git itself keeps no repository in, such as that of its hooks.
fn check_place(policy: &Policy, base: &Path, path: &Path) -> Result<(), SandboxError> {
    let is_hidden = |hidden: &PathBuf| {
        path.starts_with(hidden) || hidden.canonicalize().is_ok_and(|real| path.starts_with(real))
    };
    let tmp = std::iter::once(&policy.tmp);
    if policy.hidden.iter().chain(tmp).any(is_hidden) {
        return Err(refused(path, "it is hidden from commands"));
    }
    let mut names = path.strip_prefix(base).unwrap_or(path).components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { continue };
        let protected = policy.protected.iter().any(|it| name.eq_ignore_ascii_case(&it.name));
        let inner = names.peek().map(|inner| inner.as_os_str());
        let keeps_repositories =
            name == ".git" && inner.is_none_or(|inner| inner == "modules" || inner == "worktrees");
        if protected && !keeps_repositories {
            return Err(refused(path, "it is in a folder that is protected from commands"));
        }
    }
    Ok(())
}

fn names(folder: &OwnedFd) -> std::io::Result<Vec<std::ffi::OsString>> {
    use std::os::unix::ffi::OsStrExt;
    let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| {
        Ok(std::ffi::OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned())
    };
    Dir::read_from(folder)?.map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::{Limits, Network, Protected, SandboxMode, UnixSockets};

    /// A folder with a repository in `root`, and its policy.
    fn world() -> (tempfile::TempDir, PathBuf, Policy) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("root");
        git_dir(&root.join(".git"));
        fs::create_dir(base.join("tmp")).unwrap();
        fs::create_dir(root.join("evil")).unwrap();
        let policy = Policy {
            mode: SandboxMode::Workspace,
            roots: vec![root.clone()],
            protected: Protected::usual(),
            hidden: vec![root.join("hidden")],
            tmp: base.join("tmp"),
            readable: Vec::new(),
            network: Network::Off,
            unix_sockets: UnixSockets::Refused,
            repository: Some(root.join("evil")),
            git_programs: crate::GitPrograms::GitOnly,
            runs: crate::Runs::Commands,
            limits: Limits::default(),
        };
        (folder, root, policy)
    }

    fn git_dir(at: &Path) {
        for name in ["objects", "refs/heads", "logs", "hooks"] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    /// A git folder of a worktree, which shares `common` and says that it belongs to `pointer`.
    fn worktree(at: &Path, common: &str, pointer: &Path) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(at.join("commondir"), common).unwrap();
        fs::write(at.join("gitdir"), pointer.to_str().unwrap()).unwrap();
        fs::write(pointer, format!("gitdir: {}\n", at.display())).unwrap();
    }

    fn opened(policy: &Policy) -> Option<Vec<PathBuf>> {
        let repository = Repository::of(&policy.resolved().unwrap()).ok()??;
        Some(repository.writable.iter().map(|folder| folder.path.clone()).collect())
    }

    #[test]
    fn the_repository_around_a_folder_is_opened() {
        let (_folder, root, policy) = world();
        assert_eq!(opened(&policy), Some(vec![root.join(".git")]));
        fs::remove_dir_all(root.join(".git")).unwrap();
        assert_eq!(opened(&policy), None);
        fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(opened(&policy), None, "an empty folder");
    }

    #[test]
    fn a_worktree_opens_the_repository_that_lists_it_and_no_other() {
        let (folder, root, policy) = world();
        let base = folder.path().canonicalize().unwrap();
        let pointer = root.join("evil/.git");
        let main = base.join("main/.git");
        git_dir(&main);
        worktree(&main.join("worktrees/w"), "../..\n", &pointer);
        let shared = ["worktrees/w", "objects", "refs", "logs"].map(|name| main.join(name));
        assert_eq!(opened(&policy), Some(shared.into()));
        // What a clone can bring: its own folder answers for the pointer and names a repository.
        worktree(&base.join("clone/gd"), "../../main/.git\n", &pointer);
        assert_eq!(opened(&policy), None);
        worktree(&base.join("clone/worktrees/gd"), "../../../main/.git\n", &pointer);
        assert_eq!(opened(&policy), None);
        worktree(&root.join("gd"), "../../main/.git\n", &pointer);
        assert_eq!(opened(&policy), None);
        // A link to a folder of the repository in a clone.
        git_dir(&base.join("clone"));
        fs::remove_dir_all(base.join("clone/objects")).unwrap();
        symlink("../main/.git/objects", base.join("clone/objects")).unwrap();
        worktree(&base.join("clone/worktrees/gd"), "../..\n", &pointer);
        assert_eq!(opened(&policy), None);
    }

    #[test]
    fn links_and_protected_folders_are_not_opened() {
        let (_folder, root, policy) = world();
        let pointer = root.join("evil/.git");
        worktree(&root.join("gd"), "../cm\n", &pointer);
        git_dir(&root.join("cm"));
        assert!(opened(&policy).is_some(), "without a link it is a repository of the workspace");
        fs::remove_dir(root.join("cm/objects")).unwrap();
        symlink("../.git/hooks", root.join("cm/objects")).unwrap();
        assert_eq!(opened(&policy), None);
        for place in [".git/hooks/x", ".git/info/x", ".antiphon/x", ".ideai", "hidden/x"] {
            fs::remove_file(&pointer).unwrap();
            git_dir(&root.join(place));
            fs::write(&pointer, format!("gitdir: ../{place}\n")).unwrap();
            assert_eq!(opened(&policy), None, "{place}");
            worktree(&root.join("gd"), &format!("../{place}"), &pointer);
            assert_eq!(opened(&policy), None, "shared: {place}");
        }
        fs::remove_file(&pointer).unwrap();
        git_dir(&root.join("other"));
        symlink("../other", &pointer).unwrap();
        assert_eq!(opened(&policy), None);
        fs::remove_file(&pointer).unwrap();
        fs::remove_dir_all(root.join(".git/hooks")).unwrap();
        symlink("../evil", root.join(".git/hooks")).unwrap();
        assert_eq!(opened(&policy), None);
    }
}
