//! Folders that git keeps a repository in, whatever they are called.
//!
//! `.git` is such a folder, or a file that names one: in a worktree, a submodule, or after
//! `git init --separate-git-dir`. A bare repository has any name.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Longest pointer file that is read, in bytes.
const POINTER_BYTES_MAX: u64 = 8192;

/// The folder that a `.git` file names.
pub(crate) fn pointed_to(pointer: &Path) -> Option<PathBuf> {
    pointed_from(pointer, &contents(pointer)?)
}

/// The folder that a `.git` file at `pointer` with this text names.
pub(crate) fn pointed_from(pointer: &Path, text: &[u8]) -> Option<PathBuf> {
    resolved(pointer.parent()?, text.strip_prefix(b"gitdir:")?)
}

/// The folder that the worktree with the git folder `git_dir` shares with others.
pub(crate) fn common_of(git_dir: &Path) -> Option<PathBuf> {
    resolved(git_dir, &contents(&git_dir.join("commondir"))?)
}

/// Whether the git folder of a worktree says that it belongs to the file `pointer`. This is an
/// answer of git only if the folder is where git keeps its worktrees: a clone can bring such a file.
pub(crate) fn belongs_to(git_dir: &Path, pointer: &Path) -> bool {
    let named = contents(&git_dir.join("gitdir")).and_then(|text| resolved(git_dir, &text));
    let real = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    named.is_some_and(|named| real(&named).is_some() && real(&named) == real(pointer))
}

/// Whether a folder with these entries is a git folder, as git decides it.
pub(crate) fn is_git_dir<'a>(names: impl Iterator<Item = &'a OsStr>) -> bool {
    let (mut head, mut objects, mut refs) = (false, false, false);
    for name in names {
        head |= name == "HEAD";
        objects |= name == "objects" || name == "commondir";
        refs |= name == "refs" || name == "commondir";
    }
    head && objects && refs
}

fn contents(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = Vec::new();
    File::open(path).ok()?.take(found.len().min(POINTER_BYTES_MAX)).read_to_end(&mut text).ok()?;
    Some(text)
}

/// A path as git writes it into a file: relative to `folder` or absolute, with a line break.
fn resolved(folder: &Path, text: &[u8]) -> Option<PathBuf> {
    let text = text.trim_ascii();
    let path = folder.join(OsStr::from_bytes(text));
    if text.is_empty() {
        return None;
    }
    // A path that does not exist yet is still protected, by its plain spelling.
    Some(path.canonicalize().unwrap_or_else(|_| plain(&path)))
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other @ (Component::Prefix(_) | Component::RootDir | Component::Normal(_)) => {
                plain.push(other);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn pointers_are_followed_relative_and_absolute() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("store/modules/a")).unwrap();
        fs::create_dir(base.join("a")).unwrap();
        let pointer = base.join("a/.git");
        fs::write(&pointer, "gitdir: ../store/modules/a\n").unwrap();
        assert_eq!(pointed_to(&pointer), Some(base.join("store/modules/a")));
        fs::write(&pointer, format!("gitdir: {}", base.join("missing/../x").display())).unwrap();
        assert_eq!(pointed_to(&pointer), Some(base.join("x")));
        fs::write(&pointer, "nonsense").unwrap();
        assert_eq!(pointed_to(&pointer), None);
    }

    #[test]
    fn a_worktree_names_its_pointer() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("tree")).unwrap();
        let (pointer, git_dir) = (base.join("tree/.git"), base.join("wt"));
        fs::create_dir(&git_dir).unwrap();
        assert!(!belongs_to(&git_dir, &pointer));
        fs::write(git_dir.join("gitdir"), format!("{}\n", pointer.display())).unwrap();
        assert!(belongs_to(&git_dir, &pointer));
        assert!(!belongs_to(&git_dir, &base.join("other/.git")));
    }

    #[test]
    fn a_git_folder_is_recognized_by_its_entries() {
        let is = |names: &[&str]| is_git_dir(names.iter().map(OsStr::new));
        assert!(is(&["HEAD", "config", "objects", "refs"]));
        assert!(is(&["HEAD", "commondir", "gitdir"]));
        assert!(!is(&["HEAD", "objects"]) && !is(&["src", "refs", "objects"]));
    }
}
