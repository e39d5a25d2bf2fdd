//! Paths relative to the start of a search.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path from where a search begins, as bytes and without a leading `/`; empty for that folder
/// itself. Ordered by its parts: a folder comes right before what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RelPath(pub(crate) Vec<u8>);

impl RelPath {
    pub(crate) fn as_path(&self) -> &Path {
        as_path(&self.0)
    }

    /// Whether `path` comes after this one.
    pub(crate) fn is_before(&self, path: &[u8]) -> bool {
        compare(&self.0, path).is_lt()
    }

    /// The path of `name` in here.
    pub(crate) fn join(&self, name: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        push(&mut bytes, name);
        Self(bytes)
    }
}

impl From<&Path> for RelPath {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl Ord for RelPath {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for RelPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order of [`RelPath`]s.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let parts = |path| <[u8]>::split(path, |byte: &u8| *byte == b'/');
    parts(one).cmp(parts(other))
}

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Goes one step down.
pub(crate) fn push(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// Whether `path` is `folder` or something in it.
pub(crate) fn is_within(path: &[u8], folder: &[u8]) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_comes_right_before_what_is_in_it() {
        let mut paths = ["a.txt", "a/z", "a", "b", "a/b/c", "a-b"].map(|path| RelPath(path.into()));
        paths.sort();
        let order = paths.map(|path| String::from_utf8(path.0).unwrap());
        assert_eq!(order, ["a", "a/b/c", "a/z", "a-b", "a.txt", "b"]);
    }

    #[test]
    fn being_within_a_folder_is_about_whole_parts() {
        assert!(is_within(b"src/lib.rs", b"src"));
        assert!(is_within(b"src", b"src"));
        assert!(is_within(b"src", b""));
        assert!(!is_within(b"srcs/lib.rs", b"src"));
        assert!(!is_within(b"sr", b"src"));
    }
}
