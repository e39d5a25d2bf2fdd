//! An opened file or folder.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, open, openat, openat2,
};
use rustix::io::Errno;

use super::PathError;

/// File systems on which reading a file asks the kernel something: it may block, tell secrets of
/// this very process or have effects. `proc`, `sysfs`, `debugfs`, `tracefs`, `securityfs`, `bpf`,
/// `cgroup` and `cgroup2`, `configfs`, `efivarfs`.
const KERNEL_FILE_SYSTEMS: [u32; 10] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x0027_e0eb,
    0x6367_7270,
    0x6265_6570,
    0xde5e_81e4,
];

/// A file or folder that may be read, held by descriptor.
#[derive(Debug)]
pub struct OpenedPath {
    descriptor: OwnedFd,
    path: PathBuf,
    stat: Stat,
}

/// Type of an opened path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
}

/// Tells one state of a file from another: a changed file has another identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl OpenedPath {
    /// Wraps an `O_PATH` descriptor. Rejects anything but a file or a folder.
    pub(super) fn new(descriptor: OwnedFd, requested: &Path) -> Result<Self, PathError> {
        let io = |error: io::Error| PathError::Io { path: requested.to_owned(), reason: error };
        let stat = fstat(&descriptor).map_err(|error| io(error.into()))?;
        let path = real_path(descriptor.as_fd()).map_err(io)?;
        let found = Self { descriptor, path, stat };
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Directory => None,
            FileType::Symlink => Some("a symlink"),
            FileType::Fifo => Some("a named pipe"),
            FileType::Socket => Some("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
            FileType::Unknown => Some("something unknown"),
        };
        let about = fstatfs(&found.descriptor).map_err(|error| io(error.into()))?;
        let of_kernel =
            KERNEL_FILE_SYSTEMS.iter().any(|magic| i128::from(*magic) == i128::from(about.f_type));
        match what.or(of_kernel.then_some("part of a kernel file system")) {
            Some(what) => Err(PathError::NotAFile { path: requested.to_owned(), what }),
            None if stat.st_nlink == 0 => {
                Err(PathError::NotFound { path: requested.to_owned(), near: None })
            }
            None => Ok(found),
        }
    }

    /// Real path, without symlinks.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// File or folder.
    pub fn kind(&self) -> EntryKind {
        if FileType::from_raw_mode(self.stat.st_mode) == FileType::Directory {
            EntryKind::Folder
        } else {
            EntryKind::File
        }
    }

    /// Identity when the path was opened.
    pub fn identity(&self) -> Identity {
        Identity::of(&self.stat)
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }

    /// Opens the contents for reading: of this file, even if its path has been replaced.
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(open(link_of(self.descriptor.as_fd()), flags, Mode::empty())?.into())
    }

    /// Opens a regular file beneath this folder for reading. No symlink is followed.
    pub fn open_beneath(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let descriptor = openat2(&self.descriptor, path, flags, Mode::empty(), resolve)?;
        let found = Self::new(descriptor, path).map_err(io::Error::other)?;
        match found.kind() {
            EntryKind::File => found.open(),
            EntryKind::Folder => Err(Errno::ISDIR.into()),
        }
    }

    /// Entries of this folder: names, and whether they are folders. At most `max`, unordered.
    pub fn entries(&self, max: usize) -> io::Result<Vec<(OsString, bool)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&self.descriptor, ".", flags, Mode::empty())?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if entries.len() == max {
                break;
            }
            let is_folder = entry.file_type() == FileType::Directory;
            entries.push((OsString::from_vec(name.to_vec()), is_folder));
        }
        Ok(entries)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    pub(super) fn stat(&self) -> &Stat {
        &self.stat
    }
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        let ns = |seconds: i64, ns: i128| i128::from(seconds) * 1_000_000_000 + ns;
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec.into()),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec.into()),
        }
    }

    /// What an open file is like now.
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&fstat(file)?))
    }
}

/// Where a descriptor's file is, as the kernel sees it now.
pub(super) fn real_path(descriptor: BorrowedFd<'_>) -> io::Result<PathBuf> {
    std::fs::read_link(link_of(descriptor))
}

/// The kernel's name of a descriptor.
pub(super) fn link_of(descriptor: BorrowedFd<'_>) -> PathBuf {
    format!("/proc/self/fd/{}", descriptor.as_raw_fd()).into()
}
