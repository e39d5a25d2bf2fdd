//! The path of a Unix socket as its system call takes it. The address of a socket has room for 108 bytes; a longer
//! path is reached through the descriptor of its folder.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes of the longest path that fits into an address, without the zero behind it.
const PATH_BYTES_MAX: usize = 107;

/// The path of a socket that can be bound and connected to, for as long as this value is kept.
#[derive(Debug)]
pub struct SocketPath {
    path: PathBuf,
    /// The folder that the path leads through.
    _folder: Option<File>,
}

impl SocketPath {
    /// The socket at this path, however long it is.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(Self { path: path.to_owned(), _folder: None });
        };
        if path.as_os_str().as_bytes().len() <= PATH_BYTES_MAX {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let folder = File::open(folder)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _folder: Some(folder) })
    }

    /// The path to bind or to connect to.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}
