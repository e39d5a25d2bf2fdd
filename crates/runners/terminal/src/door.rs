//! Where people come in to watch a terminal. Whoever is not its owner is turned away; one too many is
//! told so.
//!
//! A watcher gets the screen as it is and then what changes. Each has their own pace: what is sent is
//! always the step from what they last saw to what is there now, so a slow one skips what is past and
//! holds up nobody.

mod watcher;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::getuid;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::keyboard::Keyboard;
use crate::pty::resize;
use crate::screen::Screen;
use crate::size::Size;
use crate::wire::ToWatcher;

/// Watchers of one terminal at a time. One more is told to come back later.
pub const WATCHERS_MAX: usize = 16;

/// How long to wait when nobody can be let in, for want of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How somebody watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watching {
    /// They look, and what they type is ignored. The size of their window changes nothing.
    ReadOnly,
    /// They look and type. The terminal is as large as the smallest of their windows.
    Control,
}

/// A terminal as its watchers see it.
pub(crate) struct Glass {
    pub(crate) screen: Arc<Screen>,
    pub(crate) keyboard: Keyboard,
    /// To tell the program of another size.
    pub(crate) pty: OwnedFd,
    /// How it ended, once it did.
    pub(crate) over: watch::Receiver<Option<String>>,
    windows: Mutex<BTreeMap<u64, Size>>,
}

impl Glass {
    pub(crate) fn new(
        screen: Arc<Screen>,
        keyboard: Keyboard,
        pty: OwnedFd,
        over: watch::Receiver<Option<String>>,
    ) -> Self {
        Self { screen, keyboard, pty, over, windows: Mutex::default() }
    }

    /// Somebody's window has this size, or is gone. With nobody left, the terminal stays as it is.
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

/// Lets watchers in until it is dropped, and everybody with it, or the program has ended and
/// everybody was told.
pub(crate) async fn keep_open(listener: UnixListener, glass: Arc<Glass>) {
    let mut watchers = JoinSet::new();
    let mut over = glass.over.clone();
    let mut count = 0;
    loop {
        let came = tokio::select! {
            came = listener.accept() => came,
            Some(_) = watchers.join_next() => continue,
            _ = over.wait_for(Option::is_some) => break,
        };
        match came {
            Ok((socket, _)) if is_ours(&socket) => {
                count += 1;
                if watchers.len() < WATCHERS_MAX {
                    watchers.spawn(watcher::attend(count, socket, Arc::clone(&glass)));
                } else {
                    refuse(&socket);
                }
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
    while watchers.join_next().await.is_some() {}
}

fn is_ours(socket: &UnixStream) -> bool {
    socket.peer_cred().is_ok_and(|peer| peer.uid() == getuid().as_raw())
}

/// Without waiting: a fresh socket has room.
fn refuse(socket: &UnixStream) {
    let why = format!("{WATCHERS_MAX} watch this terminal already: come back later");
    let _ = socket.try_write(&ToWatcher::refusal(&why));
}
