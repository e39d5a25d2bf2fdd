//! Dropping a request, and waiting for its response, the way everybody should: written under a name
//! that nobody watches, made durable, and renamed in.

use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::getuid;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::drawer::Drawer;
use crate::name::{requester as check_requester, response_to};
use crate::response::Response;

/// How often a response is looked for, whatever the system tells.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// Name another requester.
    #[error("`{requester}` is no name for a requester: {reason}")]
    Requester {
        /// Which.
        requester: String,
        /// Why.
        reason: String,
    },
    /// See to the folder. Nothing was asked for.
    #[error("cannot drop a request into `{}`: {reason}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        reason: String,
    },
    /// Start whoever answers, or take the request away. It stays there, and is answered later.
    #[error(
        "no response to `{}` after {waited:?}: is `antiphon serve` running? The request stays there until \
         it is answered or deleted",
        request.display()
    )]
    Timeout {
        /// The request.
        request: PathBuf,
        /// How long.
        waited: Duration,
    },
}

/// Drops a request into the folder of its requester, below `folder` (`.antiphon/requests`), under a
/// name of its own, and waits for its response. Makes folders that are not there, for nobody else.
///
/// Dropped before it is done, it leaves the request where it is: answered or not.
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
    let (own, name) = (folder.join(requester), format!("request-{}.json", Uuid::now_v7()));
    let (path, owner) = (own.join(&name), requester.to_owned());
    let no_folder = |reason: String| DropError::Folder { folder: own.clone(), reason };
    let drawer = aside(move || open(&folder, &owner)).await.map_err(no_folder)?;
    // Watched before it is dropped: no answer is too quick.
    let nudge = Arc::new(Notify::new());
    let watcher = watch(&own, Arc::clone(&nudge));
    let (target, drawer) = (name.clone(), Arc::new(drawer));
    let dropper = Arc::clone(&drawer);
    aside(move || dropper.drop_in(&target, &request).map_err(said)).await.map_err(no_folder)?;
    let response = response_to(&name);
    let answered = async {
        loop {
            let (drawer, response) = (Arc::clone(&drawer), response.clone());
            let found = aside(move || drawer.response(&response).ok_or_else(String::new)).await;
            if let Ok(found) = found {
                return found;
            }
            // Told or not, it is looked for.
            let _ = tokio::time::timeout(LOOK_EVERY, nudge.notified()).await;
        }
    };
    let response = tokio::time::timeout(timeout, answered).await;
    drop(watcher);
    response.map_err(|_| DropError::Timeout { request: path, waited: timeout })
}

fn watch(folder: &Path, nudge: Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let hear = move |_: notify::Result<notify::Event>| nudge.notify_one();
    let mut watcher = notify::recommended_watcher(hear).ok()?;
    watcher.watch(folder, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}

fn open(folder: &Path, requester: &str) -> Result<Drawer, String> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(said)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let base = openat(CWD, folder, flags, Mode::empty()).map_err(|error| said(error.into()))?;
    match mkdirat(&base, requester, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(said(error.into())),
    }
    Drawer::open(&base, OsStr::new(requester), getuid().as_raw())
}

async fn aside<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(step).await.map_err(|error| error.to_string())?
}

fn said(error: io::Error) -> String {
    error.to_string()
}
