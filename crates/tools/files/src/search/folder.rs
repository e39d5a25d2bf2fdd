//! Folders and files by descriptor. Opens only paths beneath a folder, without `..` and links.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

/// Room for one reading of a folder, as much as the C library takes.
const LISTING_BYTES: usize = 32 * 1024;

/// Virtual file systems of the kernel: their files can be endless and hold no user text.
const MADE_UP: [u32; 10] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0x1cd1,      // devpts
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
];

/// Most retries when folders are renamed during a lookup.
const TRIES_MAX: u32 = 32;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder(OwnedFd);

/// When a file was written last: seconds and nanoseconds.
pub(crate) type Modified = (i64, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    /// A link, a pipe, a socket, a device.
    Other,
}

impl From<FileType> for Kind {
    fn from(file_type: FileType) -> Self {
        match file_type {
            FileType::Directory => Self::Folder,
            FileType::RegularFile => Self::File,
            FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

impl Folder {
    /// What a descriptor of a folder stands for.
    pub(crate) fn of(folder: OwnedFd) -> Self {
        Self(folder)
    }

    /// Opens the folder at a path the user configured; follows links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// The folder at `path` in this one.
    pub(crate) fn folder(&self, path: &[u8]) -> io::Result<Self> {
        let path = if path.is_empty() { b"." } else { path };
        Ok(Self(beneath(self.0.as_fd(), path, OFlags::DIRECTORY)?))
    }

    /// The file at `path` in this one; `None` if it is something else.
    pub(crate) fn file_at(&self, path: &[u8]) -> io::Result<Option<File>> {
        regular(beneath(self.0.as_fd(), path, OFlags::NONBLOCK | OFlags::NOCTTY)?)
    }

    /// The file `name` in this folder; `None` if it is something else.
    pub(crate) fn file(&self, name: &CStr) -> io::Result<Option<File>> {
        // Opening a pipe must not wait for its writer.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => regular(file),
            // A link, where there was none a moment ago.
            Err(Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// When the file `name` was written; `None` if it is not a file.
    pub(crate) fn modified(&self, name: &CStr) -> io::Result<Option<Modified>> {
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
        Ok(is_file.then(|| (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0))))
    }

    /// What `name` is; links are not followed.
    pub(crate) fn kind(&self, name: &CStr) -> io::Result<Kind> {
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode).into())
    }

    /// What is in it, in no order; if that is more than `max`, the first and one more. `buffer` is
    /// for use again.
    pub(crate) fn list(
        &self,
        buffer: &mut Vec<u8>,
        max: usize,
    ) -> io::Result<Vec<(CString, Kind)>> {
        buffer.reserve(LISTING_BYTES);
        let mut entries = Vec::new();
        let mut reading = RawDir::new(&self.0, buffer.spare_capacity_mut());
        while let Some(entry) = reading.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // Removed while it is read: there is nothing more in it.
                Err(Errno::NOENT) => break,
                Err(error) => return Err(error.into()),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            // Some file systems do not say.
            let kind = if entry.file_type() == FileType::Unknown {
                self.kind(name).unwrap_or(Kind::Other)
            } else {
                entry.file_type().into()
            };
            entries.push((name.to_owned(), kind));
            if entries.len() > max {
                break;
            }
        }
        Ok(entries)
    }

    /// Whether the folder is on a virtual file system.
    pub(crate) fn is_virtual(&self) -> bool {
        let is = |kind: i128| MADE_UP.iter().any(|made_up| i128::from(*made_up) == kind);
        rustix::fs::fstatfs(&self.0).is_ok_and(|stat| is(stat.f_type.into()))
    }
}

fn regular(file: OwnedFd) -> io::Result<Option<File>> {
    let stat = rustix::fs::fstat(&file)?;
    Ok(FileType::from_raw_mode(stat.st_mode).is_file().then(|| file.into()))
}

fn beneath(folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES_MAX {
        match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
            // A rename raced with it, or a signal came.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return Ok(opened?),
        }
    }
    Err(Errno::AGAIN.into())
}
