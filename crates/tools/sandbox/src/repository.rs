//! The repository that commands may change, in a sandbox made for git commands.
//!
//! Git may write objects, the index, references and logs. What decides which programs git runs
//! ([`PROGRAMS`]) stays read-only; where one of these names is missing, a placeholder is there while
//! the sandbox exists, so that it cannot be created.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git_dir::{belongs_to, common_of, is_git_dir, pointed_to};
use crate::nested::PROGRAMS;
use crate::protected_path::within;
use crate::{Policy, SandboxError};

/// Parts of the shared folder of worktrees that git writes.
const SHARED: [&str; 4] = ["objects", "refs", "logs", "reftable"];

/// Folders of references, in which a link would lead git out of the repository.
const REFERENCES: [&str; 2] = ["refs", "logs"];

/// Most entries of a repository that are looked at for links.
const SWEPT_MAX: usize = 200_000;

/// A repository that commands may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Its git folder.
    pub(crate) git_dir: PathBuf,
    /// Folders that are writable: the git folder, and parts of the one that worktrees share.
    pub(crate) writable: Vec<PathBuf>,
    /// Paths that stay read-only, though they are in a writable folder.
    pub(crate) kept: Vec<PathBuf>,
}

impl Repository {
    /// The repository of `policy`, which is resolved. `None` if the policy opens none.
    pub(crate) fn of(policy: &Policy) -> Result<Option<Self>, SandboxError> {
        let Some(folder) = policy.repository.as_ref().filter(|_| policy.mode.writes_roots()) else {
            return Ok(None);
        };
        let refused = |path: &Path, reason: &str| SandboxError::Unprotectable {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let root = within(&policy.roots, folder).map(|(root, _)| root.to_owned());
        let root = root.ok_or_else(|| refused(folder, "it is outside of the workspace"))?;
        let dot_git = folder
            .ancestors()
            .take_while(|above| above.starts_with(&root))
            .map(|above| above.join(".git"))
            .find(|git| git.symlink_metadata().is_ok())
            .ok_or_else(|| refused(folder, "there is no repository here"))?;
        let found = dot_git.symlink_metadata().ok();
        if found.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Self::checked(dot_git, &root).map(Some);
        }
        let git_dir = pointed_to(&dot_git).filter(|_| found.is_some_and(|found| found.is_file()));
        let git_dir = git_dir.ok_or_else(|| refused(&dot_git, "it names no repository"))?;
        if !git_dir.starts_with(&root) && !belongs_to(&git_dir, &dot_git) {
            let reason = "the repository that it names does not know it. Run `git worktree repair`";
            return Err(refused(&dot_git, reason));
        }
        Self::checked(git_dir, &root).map(Some)
    }

    fn checked(git_dir: PathBuf, root: &Path) -> Result<Self, SandboxError> {
        let repository = Self::at(git_dir)?;
        let outside = |path: &&PathBuf| !path.starts_with(root);
        // A git folder in the workspace may have been written by a command, and with it the name of
        // the folder it shares.
        match repository.writable.iter().find(outside) {
            Some(path) if repository.git_dir.starts_with(root) => {
                Err(SandboxError::Unprotectable {
                    path: path.clone(),
                    reason: "it is outside of the workspace, and only a file in the workspace \
                             names it"
                        .to_owned(),
                })
            }
            Some(_) | None => Ok(repository),
        }
    }

    fn at(git_dir: PathBuf) -> Result<Self, SandboxError> {
        let refused = || SandboxError::Unprotectable {
            path: git_dir.clone(),
            reason: "it is not a repository".to_owned(),
        };
        let names: Vec<_> = fs::read_dir(&git_dir)
            .map_err(|_| refused())?
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        if !is_git_dir(names.iter().map(std::ffi::OsString::as_os_str)) {
            return Err(refused());
        }
        let mut kept: Vec<PathBuf> = PROGRAMS.iter().map(|name| git_dir.join(name)).collect();
        let mut writable = vec![git_dir.clone()];
        if let Some(common) = common_of(&git_dir).filter(|common| *common != git_dir) {
            let parts = SHARED.iter().map(|name| common.join(name));
            writable.extend(parts.filter(|part| part.is_dir()));
            kept.push(git_dir.join("gitdir"));
        }
        Ok(Self { git_dir, writable, kept })
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

    /// Removes what commands may have left to mislead git outside of the sandbox: links in place of
    /// its files, and programs in the steps of a rebase. Called from outside, after the last
    /// process has ended.
    pub(crate) fn sweep(&self) {
        remove_links(&self.git_dir, &mut 0, |_| false);
        for folder in &self.writable {
            let shared = REFERENCES.iter().any(|name| folder.ends_with(name));
            for name in REFERENCES {
                let references = if shared { folder.clone() } else { folder.join(name) };
                remove_links(&references, &mut 0, |_| true);
            }
        }
        for name in ["git-rebase-todo", "git-rebase-todo.backup"] {
            drop_programs(&self.git_dir.join("rebase-merge").join(name));
        }
    }
}

fn remove_links(folder: &Path, seen: &mut usize, enters: impl Fn(&Path) -> bool + Copy) {
    let is_folder = folder.symlink_metadata().is_ok_and(|found| found.is_dir());
    let Ok(entries) = fs::read_dir(folder) else { return };
    if !is_folder {
        return;
    }
    for entry in entries.flatten() {
        *seen += 1;
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if *seen > SWEPT_MAX {
            return;
        }
        if kind.is_symlink() {
            // Old versions of git keep `HEAD` as a link to a reference, which git itself checks.
            let leads_away = fs::read_link(&path).is_ok_and(|to| !to.starts_with("refs"));
            if leads_away {
                let _ = fs::remove_file(&path);
            }
        } else if kind.is_dir() && enters(&path) {
            remove_links(&path, seen, enters);
        }
    }
}

/// Removes the lines of a rebase that run programs.
fn drop_programs(todo: &Path) {
    let Ok(text) = fs::read_to_string(todo) else { return };
    let runs = |line: &str| matches!(line.split_whitespace().next(), Some("exec" | "x"));
    if text.lines().any(runs) {
        let kept: String =
            text.lines().filter(|line| !runs(line)).map(|l| l.to_owned() + "\n").collect();
        let _ = fs::write(todo, kept);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn git_dir(at: &Path) {
        for name in ["objects", "refs/heads", "logs"] {
            fs::create_dir_all(at.join(name)).unwrap();
        }
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn links_and_programs_are_removed_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        git_dir(&git);
        symlink("/etc/passwd", git.join("index")).unwrap();
        symlink("/etc/passwd", git.join("refs/heads/evil")).unwrap();
        fs::write(git.join("refs/heads/main"), "0\n").unwrap();
        fs::create_dir(git.join("rebase-merge")).unwrap();
        let todo = git.join("rebase-merge/git-rebase-todo");
        fs::write(&todo, "pick 1\nexec evil\n x evil\npick 2\n").unwrap();
        Repository::at(git.clone()).unwrap().sweep();
        assert!(git.join("index").symlink_metadata().is_err());
        assert!(git.join("refs/heads/evil").symlink_metadata().is_err());
        assert!(git.join("refs/heads/main").exists() && git.join("HEAD").exists());
        assert_eq!(fs::read_to_string(todo).unwrap(), "pick 1\npick 2\n");
    }

    #[test]
    fn a_folder_that_is_no_repository_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Repository::at(folder.path().to_owned()).is_err());
    }
}
