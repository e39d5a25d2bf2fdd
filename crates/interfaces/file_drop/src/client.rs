//! Drops a request and waits for its response: written under a hidden name, synced, and renamed.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use antiphon_folder_watch::{FolderWatcher, Links};
use rustix::fs::{CWD, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::getuid;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::folder::name::{requester as check_requester, response_to};
use crate::folder::request_root::GroupWrites;
use crate::folder::requester_folder::RequesterFolder;
use crate::response::Response;

/// How often the response is looked for in addition to notifications.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// The name of the requester is not valid.
    #[error("`{requester}` is not a valid requester name: {reason}")]
    Requester {
        /// The refused name.
        requester: String,
        /// Which rule it breaks.
        reason: String,
    },
    /// The folder cannot be used. No request was dropped.
    #[error("cannot drop a request into `{}`: {reason}", folder.display())]
    Folder {
        /// Folder of the requester.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No response in time. The request stays and is answered when a server runs.
    #[error(
        "no response to `{}` after {waited:?}: is `antiphon serve` running? The request stays there until \
         it is answered or deleted",
        request.display()
    )]
    Timeout {
        /// Path of the request.
        request: PathBuf,
        /// The timeout.
        waited: Duration,
    },
}

/// Drops a request with a generated name into the folder of its requester, in `folder`
/// (`.antiphon/requests`), and waits for its response. Creates missing folders with mode 0700.
///
/// When this future is dropped early, the request stays where it is, answered or not.
pub async fn drop_and_wait(
    folder: impl Into<PathBuf>,
    requester: &str,
    request: Vec<u8>,
    timeout: Duration,
) -> Result<Response, DropError> {
    let folder = folder.into();
    check_requester(OsStr::new(requester)).map_err(|fault| DropError::Requester {
        requester: requester.to_owned(),
        reason: fault.message,
    })?;
    let (requester_folder, name) =
        (folder.join(requester), format!("request-{}.json", Uuid::now_v7()));
    let (path, owner) = (requester_folder.join(&name), requester.to_owned());
    let folder_error =
        |reason: String| DropError::Folder { folder: requester_folder.clone(), reason };
    let folder = run_blocking(move || open(&folder, &owner)).await.map_err(folder_error)?;
    // Watched before the request is dropped: no response is missed.
    let wake = Arc::new(Notify::new());
    let watcher = watch(&requester_folder, Arc::clone(&wake));
    let (target, folder) = (name.clone(), Arc::new(folder));
    let dropper = Arc::clone(&folder);
    run_blocking(move || dropper.drop_request(&target, &request).map_err(text))
        .await
        .map_err(folder_error)?;
    let response = response_to(&name);
    let answered = async {
        loop {
            let (folder, response) = (Arc::clone(&folder), response.clone());
            let found =
                run_blocking(move || folder.response(&response).ok_or_else(String::new)).await;
            if let Ok(found) = found {
                return found;
            }
            // Notified or not, the next round looks for the response.
            let _ = tokio::time::timeout(POLL_EVERY, wake.notified()).await;
        }
    };
    let response = tokio::time::timeout(timeout, answered).await;
    drop(watcher);
    response.map_err(|_| DropError::Timeout { request: path, waited: timeout })
}

fn watch(folder: &Path, wake: Arc<Notify>) -> FolderWatcher {
    let mut watcher = FolderWatcher::new(move |_| wake.notify_one());
    watcher.watch(folder, Links::Keep);
    watcher
}

fn open(folder: &Path, requester: &str) -> Result<RequesterFolder, String> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(text)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let base = openat(CWD, folder, flags, Mode::empty()).map_err(|error| text(error.into()))?;
    match mkdirat(&base, requester, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(text(error.into())),
    }
    let group_writes = GroupWrites::within(&fstat(&base).map_err(|error| text(error.into()))?);
    let name = OsStr::new(requester);
    let opened = RequesterFolder::open(&base, name, getuid().as_raw(), group_writes)?;
    match opened.fault() {
        Some(fault) => Err(fault.to_owned()),
        None => Ok(opened),
    }
}

async fn run_blocking<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(step).await.map_err(|error| error.to_string())?
}

fn text(error: io::Error) -> String {
    error.to_string()
}
