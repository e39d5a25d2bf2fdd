//! The private folder of a task: its lock, its socket, its recording and its context.
//!
//! The holder of the lock is the only process that works on the task. The guard holds it too, so a
//! task that is started again waits until every earlier process is gone.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use antiphon_core::TaskId;
use antiphon_private_file::{create_folder, open_lock_at};
use rustix::fs::{FlockOperation, flock};
use tokio::net::{UnixListener, UnixStream};

/// Most folders of tasks, with their recordings. Beyond it, the oldest are removed.
pub const TASK_FOLDERS_MAX: usize = 256;

/// Longest name of a folder.
const NAME_BYTES_MAX: usize = 100;

/// Interval of attempts to take the lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// How long earlier processes may take to end.
const CLAIM_MAX: Duration = Duration::from_secs(15);

const SOCKET: &str = "socket";

/// Path of the socket to attach to a task's terminal. `None` for a task whose id cannot name a
/// folder: such a task never has a terminal.
pub fn socket_path(base: &Path, task_id: &TaskId) -> Option<PathBuf> {
    Some(base.join(name(task_id)?).join(SOCKET))
}

/// The private folder of a task.
#[derive(Debug)]
pub(crate) struct TaskFolder {
    path: PathBuf,
    lock: File,
}

impl TaskFolder {
    /// Creates the folder and waits for its lock. Cancel safe.
    pub(crate) async fn claim(base: &Path, task_id: &TaskId) -> io::Result<Self> {
        let name =
            name(task_id).ok_or_else(|| io::Error::other("the task's id cannot name a folder"))?;
        let path = base.join(name);
        create_folder(&path)?;
        let lock = open_lock(&path)?;
        let until = tokio::time::Instant::now() + CLAIM_MAX;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if tokio::time::Instant::now() > until {
                return Err(io::Error::other("its program still runs from before"));
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        Ok(Self { path, lock })
    }

    /// A copy of the lock, for a process that outlives this one.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Listens for watchers. Only the owner can connect.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        self.remove_socket();
        // A path through the folder's descriptor is short, however deep the folder is.
        let base = File::open(&self.path)?;
        let listener = UnixListener::bind(through(&base))?;
        fs::set_permissions(self.file(SOCKET), fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Removes the socket: no watcher can connect anymore.
    pub(crate) fn remove_socket(&self) {
        // Fails if it does not exist.
        let _ = fs::remove_file(self.file(SOCKET));
    }
}

impl Drop for TaskFolder {
    fn drop(&mut self) {
        self.remove_socket();
    }
}

/// Connects to a socket whose path may be of any length.
pub(crate) async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let base = File::open(socket.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    UnixStream::connect(through(&base)).await
}

fn through(base: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", base.as_raw_fd()))
}

/// Whether no process works on the task of this name.
pub(crate) fn is_free(base: &Path, name: &str) -> bool {
    if !is_name(name) {
        return true;
    }
    let folder = base.join(name);
    if !folder.exists() {
        return true;
    }
    open_lock(&folder)
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Removes the oldest folders beyond the limit that are not in use. Blocks.
pub(crate) fn prune(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let about = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let used = entry.metadata().ok()?.modified().ok()?;
        Some((used, name))
    };
    let mut folders: Vec<(SystemTime, String)> = entries.flatten().filter_map(about).collect();
    folders.sort();
    let too_many = folders.len().saturating_sub(TASK_FOLDERS_MAX);
    for (_, name) in folders.into_iter().take(too_many) {
        if is_name(&name) && is_free(base, &name) {
            // A folder that cannot be removed now is tried again the next time.
            let _ = fs::remove_dir_all(base.join(name));
        }
    }
}

fn open_lock(folder: &Path) -> io::Result<File> {
    open_lock_at(File::open(folder)?, "lock")
}

fn name(task_id: &TaskId) -> Option<&str> {
    Some(task_id.as_str()).filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}
