//! The private folder of a task: its lock, its socket, its recording and its context.
//!
//! Whoever holds the lock is the only one who works on the task. The guard holds it as well, so a
//! task that is taken up again waits until all that is left of the time before is gone.

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

/// Folders of tasks that are kept, with their recordings. The oldest go first.
pub const PLACES_KEPT_MAX: usize = 256;

/// Longest name of a folder.
const NAME_BYTES_MAX: usize = 100;

/// How often a lock is tried.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// How long those from before may take to be gone.
const CLAIM_MAX: Duration = Duration::from_secs(15);

const SOCKET: &str = "socket";

/// Where somebody attaches to a task's terminal, if it has one. `None` for a task whose id cannot
/// name a folder: such a task never has one.
pub fn socket_path(folder: &Path, task_id: &TaskId) -> Option<PathBuf> {
    Some(folder.join(name(task_id)?).join(SOCKET))
}

/// The private folder of a task.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    lock: File,
}

impl Place {
    /// Makes it, and waits until nobody else has it. Cancel safe.
    pub(crate) async fn claim(folder: &Path, task_id: &TaskId) -> io::Result<Self> {
        let name =
            name(task_id).ok_or_else(|| io::Error::other("the task's id cannot name a folder"))?;
        let path = folder.join(name);
        create_folder(&path)?;
        let lock = open_lock(&path)?;
        let until = tokio::time::Instant::now() + CLAIM_MAX;
        while flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if tokio::time::Instant::now() > until {
                return Err(io::Error::other("its program still runs from before"));
            }
            tokio::time::sleep(TRY_EVERY).await;
        }
        Ok(Self { path, lock })
    }

    /// The lock, for somebody who outlives us.
    pub(crate) fn lock(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where watchers come in. Only we may.
    pub(crate) fn listen(&self) -> io::Result<UnixListener> {
        self.take_socket_away();
        // A path through the folder's descriptor is short, however deep the folder is.
        let folder = File::open(&self.path)?;
        let listener = UnixListener::bind(through(&folder))?;
        fs::set_permissions(self.file(SOCKET), fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    }

    /// Nobody comes in any more.
    pub(crate) fn take_socket_away(&self) {
        // It may not be there.
        let _ = fs::remove_file(self.file(SOCKET));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.take_socket_away();
    }
}

/// Connects to a socket, however long its path is.
pub(crate) async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let folder = File::open(socket.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    UnixStream::connect(through(&folder)).await
}

fn through(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// Whether nobody works on the task that this name is of.
pub(crate) fn is_free(folder: &Path, name: &str) -> bool {
    if !is_name(name) {
        return true;
    }
    let place = folder.join(name);
    if !place.exists() {
        return true;
    }
    open_lock(&place)
        .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Takes the oldest folders away, as long as there are too many and nobody works there. Blocks.
pub(crate) fn prune(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let about = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let used = entry.metadata().ok()?.modified().ok()?;
        Some((used, name))
    };
    let mut places: Vec<(SystemTime, String)> = entries.flatten().filter_map(about).collect();
    places.sort();
    let too_many = places.len().saturating_sub(PLACES_KEPT_MAX);
    for (_, name) in places.into_iter().take(too_many) {
        if is_name(&name) && is_free(folder, &name) {
            // What cannot be removed now is tried again the next time.
            let _ = fs::remove_dir_all(folder.join(name));
        }
    }
}

fn open_lock(place: &Path) -> io::Result<File> {
    open_lock_at(File::open(place)?, "lock")
}

fn name(task_id: &TaskId) -> Option<&str> {
    Some(task_id.as_str()).filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}
