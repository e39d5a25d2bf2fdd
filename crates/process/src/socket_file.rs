//! The project's socket: the file that the owner of the journal listens on. It is for this user alone.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use antiphon_client::SocketPath;
use antiphon_interface_transport::UnixSocket;
use tokio::net::UnixListener;

/// Name of the socket in the project's state folder.
pub const SOCKET: &str = "server.sock";

/// A socket file. Dropping it removes the file, unless another owner has replaced it.
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            // A file that stays is harmless: no process listens on it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on the project's socket. This process holds the lock of the journal, so a socket that is there belongs
/// to an owner that has ended: it is replaced. Anything else is not.
pub fn bind(path: &Path) -> Result<(UnixSocket, SocketFile), String> {
    let refuse = |reason: String| format!("cannot listen on {}: {reason}", path.display());
    let fault = |error: io::Error| refuse(error.to_string());
    let uid = fs::metadata("/proc/self").map_err(fault)?.uid();
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(fault(error)),
        Ok(about) if !about.file_type().is_socket() || about.uid() != uid => {
            return Err(refuse("another file is in its place: remove it".to_owned()));
        }
        Ok(_) => fs::remove_file(path).map_err(fault)?,
    }
    let listener = UnixListener::bind(SocketPath::new(path).map_err(fault)?.as_path());
    let listener = listener.map_err(fault)?;
    let inode = fs::symlink_metadata(path).map_err(fault)?.ino();
    let file = SocketFile { path: path.to_owned(), inode };
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(fault)?;
    Ok((UnixSocket { listener, uid }, file))
}
