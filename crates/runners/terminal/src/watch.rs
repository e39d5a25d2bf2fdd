//! Serves watchers of a terminal. Refuses other users, and watchers beyond the limit.
//!
//! A watcher gets the current screen and then its changes. Each update is the difference between
//! the screen last sent to this watcher and the current one, so a slow watcher skips states and
//! delays no other.

mod drawing;
mod watcher;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::getuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::pty::keyboard::Keyboard;
use crate::pty::resize;
use crate::pty::screen::Screen;
use crate::pty::size::Size;
use crate::watch::wire::ToWatcher;

/// Most watchers of one terminal at a time. Further ones are refused.
pub const WATCHERS_MAX: usize = 16;

/// How long to wait after a failed accept, for example without free descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Whether a watcher may type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// The watcher only looks: typed keys and the window size are ignored.
    ReadOnly,
    /// The watcher looks and types. The terminal is as large as the smallest window of these
    /// watchers.
    Control,
}

/// A running terminal, shared by its watchers.
pub(crate) struct SharedTerminal {
    pub(crate) screen: Arc<Screen>,
    pub(crate) keyboard: Keyboard,
    /// To report a new size to the program.
    pub(crate) pty: OwnedFd,
    /// How the program ended, as a sentence. `None` while it runs.
    pub(crate) ended: watch::Receiver<Option<String>>,
    windows: Mutex<BTreeMap<u64, Size>>,
}

impl SharedTerminal {
    pub(crate) fn new(
        screen: Arc<Screen>,
        keyboard: Keyboard,
        pty: OwnedFd,
        ended: watch::Receiver<Option<String>>,
    ) -> Self {
        Self { screen, keyboard, pty, ended, windows: Mutex::default() }
    }

    /// Sets or removes the window size of a watcher. Without watchers the terminal keeps its size.
    fn set_window(&self, watcher: u64, window: Option<Size>) {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        match window {
            Some(window) => windows.insert(watcher, window),
            None => windows.remove(&watcher),
        };
        let Some(size) = windows.values().copied().reduce(Size::within) else { return };
        if size != self.screen.size() {
            self.screen.resize(size);
            if let Err(error) = resize(&self.pty, size) {
                tracing::debug!(%error, "a terminal keeps its size");
            }
        }
    }
}

/// Accepts watchers until the program has ended and all of them were informed. Dropping it
/// disconnects all watchers.
pub(crate) async fn serve_watchers(listener: UnixListener, terminal: Arc<SharedTerminal>) {
    let mut watchers = JoinSet::new();
    let mut ended = terminal.ended.clone();
    let mut count = 0;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = watchers.join_next() => continue,
            _ = ended.wait_for(Option::is_some) => break,
        };
        match accepted {
            Ok((socket, _)) if is_same_user(&socket) => {
                count += 1;
                if watchers.len() < WATCHERS_MAX {
                    watchers.spawn(watcher::serve(count, socket, Arc::clone(&terminal)));
                } else {
                    refuse(&socket);
                }
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_RETRY).await,
        }
    }
    while watchers.join_next().await.is_some() {}
}

fn is_same_user(socket: &UnixStream) -> bool {
    socket.peer_cred().is_ok_and(|peer| peer.uid() == getuid().as_raw())
}

/// Does not wait: a new socket has buffer space.
fn refuse(socket: &UnixStream) {
    let reason = format!("{WATCHERS_MAX} watch this terminal already: come back later");
    let _ = socket.try_write(&ToWatcher::refusal(&reason));
}
