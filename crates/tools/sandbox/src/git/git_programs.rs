//! The programs that may run where git may write: git's own, and a few that only read.
//!
//! Settings, attributes and options make git start programs: filters, drivers, editors, helpers. A
//! command can write such settings into a repository of its own, and the program with them. Landlock
//! lets no other programs be started, so not even an interpreter that would read a script. The
//! shell that starts git is a copy in memory, which git cannot name: its process can be inspected by
//! no other.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, fchmod, memfd_create};

use crate::{GitPrograms, Policy, SandboxError};

/// Where programs of git are, besides below the folder above that of `git`.
const GIT_CORE: [&str; 2] = ["/usr/lib/git-core", "/usr/libexec/git-core"];

/// Programs that only read, which go with git commands in one script. They start no others, and
/// whatever arguments git gives them, they write to no file.
const READERS: [&str; 30] = [
    "basename", "cat", "cmp", "comm", "cut", "df", "diff", "dirname", "du", "echo", "false",
    "grep", "head", "id", "ls", "nl", "printf", "pwd", "readlink", "realpath", "rev", "seq",
    "sleep", "stat", "tac", "tail", "tr", "true", "uname", "wc",
];

/// One file with many programs in it, a shell among them.
const WITH_SHELL: [&str; 2] = ["busybox", "toybox"];

/// Mode of a program that can be started and not read. The kernel protects its process.
const ONLY_EXECUTABLE: u32 = 0o111;

/// Longest path of a program's loader, in bytes.
const LOADER_BYTES_MAX: u64 = 4096;

/// The files and folders whose programs may be started under a resolved policy. `None`: all.
pub(crate) fn only_programs(policy: &Policy) -> Result<Option<Vec<PathBuf>>, SandboxError> {
    match policy.git_programs {
        GitPrograms::GitOnly if policy.repository.is_some() => {}
        GitPrograms::GitOnly | GitPrograms::All => return Ok(None),
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_own = |program: &PathBuf| {
        let writable = policy.roots.iter().chain(std::iter::once(&policy.tmp));
        let mut writable = writable.map(PathBuf::as_path).chain([Path::new("/tmp")]);
        !writable.any(|folder| program.starts_with(folder))
    };
    let gits = folders.iter().filter_map(|folder| folder.join("git").canonicalize().ok());
    let mut programs: Vec<PathBuf> = gits.filter(is_own).collect();
    if programs.is_empty() {
        return Err(SandboxError::Failed {
            step: "find git".to_owned(),
            reason: "no folder of `PATH` outside of the workspace has it: install git".to_owned(),
        });
    }
    let beside = programs.iter().filter_map(|git| git.parent()?.parent());
    let beside = beside.flat_map(|prefix| ["lib", "libexec"].map(|lib| prefix.join(lib)));
    let cores = beside.map(|lib| lib.join("git-core")).chain(GIT_CORE.map(PathBuf::from));
    let cores: Vec<PathBuf> =
        cores.filter_map(|core| core.canonicalize().ok()).filter(is_own).collect();
    let readers = folders.iter().flat_map(|folder| READERS.map(|name| folder.join(name)));
    let readers = readers.filter_map(|reader| reader.canonicalize().ok());
    let has_shell = |reader: &PathBuf| {
        reader.file_name().is_none_or(|name| WITH_SHELL.iter().any(|shell| name == *shell))
    };
    programs.extend(readers.filter(|reader| is_own(reader) && !has_shell(reader)));
    let loaders: Vec<PathBuf> = programs.iter().filter_map(|program| loader(program)).collect();
    programs.extend(cores);
    programs.extend(loaders);
    programs.extend(loader(Path::new("/proc/self/exe")));
    programs.extend(loader(Path::new("/bin/bash")));
    programs.sort();
    programs.dedup();
    Ok(Some(programs))
}

/// A copy of a program in memory that can be started, but neither read nor named by others.
pub(crate) fn copy_in_memory(program: &Path) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("shell", MemfdFlags::CLOEXEC)?);
    io::copy(&mut File::open(program)?, &mut file)?;
    file.flush()?;
    fchmod(&file, Mode::from_raw_mode(ONLY_EXECUTABLE))?;
    Ok(file.into())
}

/// The program that the kernel starts to load a dynamic program, as the file of a 64-bit ELF
/// program names it.
fn loader(program: &Path) -> Option<PathBuf> {
    const INTERPRETER: u32 = 3;
    let file = File::open(program).ok()?;
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let (table, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    let part = (0..u64::from(count)).find_map(|index| {
        let mut part = [0; 56];
        let at = table.checked_add(index.checked_mul(size.into())?)?;
        file.read_exact_at(&mut part, at).ok()?;
        let kind = u32::from_ne_bytes(part.get(..4)?.try_into().ok()?);
        (kind == INTERPRETER).then_some(part)
    })?;
    let (at, length) = (u64_at(&part, 8)?, u64_at(&part, 32)?);
    let mut path = vec![0; usize::try_from(length.min(LOADER_BYTES_MAX)).ok()?];
    file.read_exact_at(&mut path, at).ok()?;
    let path = path.split(|byte| *byte == 0).next()?;
    Path::new(OsStr::from_bytes(path)).canonicalize().ok()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_a_program_is_found() {
        let found = loader(Path::new("/bin/bash")).unwrap();
        assert!(found.file_name().unwrap().to_str().unwrap().starts_with("ld"), "{found:?}");
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\n").unwrap();
        assert_eq!(loader(script.path()), None);
    }
}
