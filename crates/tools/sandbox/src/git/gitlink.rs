//! Folders of a work tree that belong to a submodule, as the index of its repository lists them.
//!
//! Git in the work tree enters every such folder that has a `.git` and obeys the settings there. So a
//! command must not be able to make a repository in one that has none yet.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::Errno;

use crate::git_dir::pointed_to;
use crate::pinned_folder::{open_below, open_in};

/// Largest index that is read, in bytes.
const INDEX_BYTES_MAX: u64 = 1 << 30;

/// Lengths of the names of objects, in bytes: SHA-1 and SHA-256.
const HASHES: [usize; 2] = [20, 32];

/// Mode of an entry for a submodule, and the mask for the kind of an entry.
const GITLINK: u32 = 0o160_000;
const KIND: u32 = 0o170_000;

/// Kinds of entries: files, links, submodules, and folders of a sparse index.
const KINDS: [u32; 4] = [0o100_000, 0o120_000, GITLINK, 0o040_000];

/// The folders of submodules in the work tree `folder`, whose `.git` is a folder or names one.
pub(crate) fn gitlinks(folder: &Path) -> Vec<PathBuf> {
    let dot_git = folder.join(".git");
    let is_file = dot_git.symlink_metadata().is_ok_and(|found| found.is_file());
    let git_dir = if is_file { pointed_to(&dot_git) } else { Some(dot_git) };
    let Some(git_dir) = git_dir else { return Vec::new() };
    let mut found = Vec::new();
    let mut name = "index".to_owned();
    // A split index names the file with the rest of it, which names no further one.
    for _ in 0..2 {
        let Some(index) = contents(&git_dir.join(&name)) else { break };
        let Some(Index { links, rest }) = HASHES.iter().find_map(|hash| parse(&index, *hash))
        else {
            break;
        };
        found.extend(links.iter().filter(|link| is_plain(link)).map(|link| folder.join(link)));
        let Some(rest) = rest else { break };
        name = format!("sharedindex.{rest}");
    }
    found
}

/// Makes the folder `path` below `root` if it is missing. A link on the way is not followed.
pub(crate) fn make_folder(root: &Path, path: &Path) -> std::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut above = open_below(root, root, flags)?;
    for name in path.strip_prefix(root).unwrap_or(path).components() {
        let name = Path::new(name.as_os_str());
        match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        above = open_in(&above, name, flags)?;
    }
    Ok(())
}

struct Index {
    links: Vec<PathBuf>,
    /// Name of the file with the rest of the index, in hexadecimal digits.
    rest: Option<String>,
}

fn contents(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    if found.len() > INDEX_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(INDEX_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.all(|part| matches!(part, Component::Normal(_))) && path.components().next().is_some()
}

/// Reads an index whose names of objects have `hash` bytes. `None` if it is not one.
fn parse(index: &[u8], hash: usize) -> Option<Index> {
    let version = u32_at(index, 4)?;
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut name, mut links) = (12, Vec::new(), Vec::new());
    for _ in 0..u32_at(index, 8)? {
        let start = at;
        let mode = u32_at(index, start + 24)?;
        let flags = u16::from_be_bytes(index.get(start + 40 + hash..)?.get(..2)?.try_into().ok()?);
        at = start + 42 + hash + if flags & 0x4000 == 0 { 0 } else { 2 };
        if version == 4 {
            let (dropped, length) = offset(index.get(at..)?)?;
            name.truncate(name.len().checked_sub(dropped)?);
            at += length;
        } else {
            name.clear();
        }
        let text = index.get(at..)?;
        let text = text.get(..text.iter().position(|byte| *byte == 0)?)?;
        name.extend_from_slice(text);
        at += text.len() + 1;
        if version < 4 {
            at = start + (at - start).next_multiple_of(8);
        }
        let length = usize::from(flags & 0x0fff);
        if !KINDS.contains(&(mode & KIND)) || length != name.len().min(0x0fff) {
            return None;
        }
        if mode & KIND == GITLINK {
            links.push(PathBuf::from(OsStr::from_bytes(&name)));
        }
    }
    Some(Index { links, rest: rest(index, at, hash) })
}

/// The name of the file with the rest of an index, in the extension `link`.
fn rest(index: &[u8], mut at: usize, hash: usize) -> Option<String> {
    loop {
        let (name, length) = (index.get(at..at + 4)?, u32_at(index, at + 4)?);
        if name == b"link" {
            let base = index.get(at + 8..at + 8 + hash)?;
            let digits = base.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
            return digits.map(|digit| char::from_digit(digit.into(), 16)).collect();
        }
        at = at.checked_add(8)?.checked_add(usize::try_from(length).ok()?)?;
    }
}

/// A number of variable length, and its length.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let done = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{arguments:?} {done:?}");
    }

    #[test]
    fn gitlinks_of_every_form_of_index_are_found() {
        for (format, change) in [
            ("sha1", &["update-index", "--index-version=2"][..]),
            ("sha1", &["update-index", "--index-version=4"]),
            ("sha1", &["update-index", "--split-index"]),
            ("sha1", &["add", "--intent-to-add", "later"]),
            ("sha256", &["update-index", "--index-version=2"]),
            ("sha256", &["update-index", "--index-version=4"]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let base = folder.path();
            git(base, &["init", "-q", &format!("--object-format={format}"), "."]);
            for name in ["a", "vendor.txt", "zz", "later"] {
                std::fs::write(base.join(name), name).unwrap();
            }
            git(base, &["add", "a", "vendor.txt", "zz"]);
            let object = "1".repeat(if format == "sha1" { 40 } else { 64 });
            for link in ["lib", "vendor/lib", "vendor/library"] {
                let entry = format!("160000,{object},{link}");
                git(base, &["update-index", "--add", "--cacheinfo", &entry]);
            }
            git(base, change);
            let expected = ["lib", "vendor/lib", "vendor/library"].map(|link| base.join(link));
            let mut found = gitlinks(base);
            found.sort();
            assert_eq!(found, expected, "{format} {change:?}");
        }
    }

    #[test]
    fn what_is_no_index_has_none() {
        for bytes in
            [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\xff\xff\xff\xff", b"DIRC\0\0\0\x09\0\0\0\0"]
        {
            assert!(HASHES.iter().all(|hash| parse(bytes, *hash).is_none()), "{bytes:?}");
        }
    }
}
