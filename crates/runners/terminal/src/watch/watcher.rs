//! One watcher.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{SharedTerminal, Watching};
use crate::pty::size::Size;
use crate::watch::drawing::draw_screen;
use crate::watch::wire::{FromWatcher, ToWatcher, VERSION};

/// How long a watcher may take to send its first frame.
const HELLO_MAX: Duration = Duration::from_secs(5);

/// Shortest time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(10);

/// How long a watcher may take to receive the end.
const END_WAIT_MAX: Duration = Duration::from_secs(1);

/// Serves a watcher until it disconnects or the program has ended.
pub(super) async fn serve(number: u64, mut socket: UnixStream, terminal: Arc<SharedTerminal>) {
    let hello = timeout(HELLO_MAX, FromWatcher::receive(&mut socket)).await;
    let Ok(Ok(Some(FromWatcher::Hello { version, watching, window }))) = hello else { return };
    if version != VERSION {
        let reason = format!("this terminal speaks version {VERSION}, not {version}");
        let _ = timeout(END_WAIT_MAX, ToWatcher::Refused(reason).send(&mut socket)).await;
        return;
    }
    let watcher = ConnectedWatcher::take(number, watching, window, &terminal);
    let (mut incoming, mut outgoing) = socket.split();
    tokio::select! {
        () = draw(&mut outgoing, &watcher) => {}
        () = handle_frames(&mut incoming, &watcher) => {}
    }
}

/// A connected watcher. On drop its window size no longer counts.
struct ConnectedWatcher<'a> {
    number: u64,
    watching: Watching,
    window: watch::Sender<Size>,
    terminal: &'a SharedTerminal,
}

impl<'a> ConnectedWatcher<'a> {
    fn take(number: u64, watching: Watching, window: Size, terminal: &'a SharedTerminal) -> Self {
        let watcher = Self { number, watching, window: watch::Sender::new(window), terminal };
        watcher.resize(window);
        watcher
    }

    fn resize(&self, window: Size) {
        self.window.send_replace(window);
        match self.watching {
            Watching::Control => self.terminal.set_window(self.number, Some(window)),
            Watching::ReadOnly => {}
        }
    }
}

impl Drop for ConnectedWatcher<'_> {
    fn drop(&mut self) {
        self.terminal.set_window(self.number, None);
    }
}

/// Handles the frames of the watcher.
async fn handle_frames(from: &mut (impl AsyncRead + Unpin), watcher: &ConnectedWatcher<'_>) {
    while let Ok(Some(said)) = FromWatcher::receive(from).await {
        match (said, watcher.watching) {
            (FromWatcher::Keys(keys), Watching::Control) => {
                watcher.terminal.keyboard.type_in(keys).await;
            }
            (FromWatcher::Keys(_), Watching::ReadOnly) => {}
            (FromWatcher::Window(window), _) => watcher.resize(window),
            (FromWatcher::Hello { .. }, _) => return,
        }
    }
}

/// Sends the screen, update by update.
async fn draw(to: &mut (impl AsyncWrite + Unpin), watcher: &ConnectedWatcher<'_>) {
    let mut changes = watcher.terminal.screen.changes();
    let mut window = watcher.window.subscribe();
    let mut ended = watcher.terminal.ended.clone();
    let mut seen: Option<(vt100::Screen, Size)> = None;
    loop {
        changes.mark_unchanged();
        let how = ended.borrow_and_update().clone();
        let (now, size) = (watcher.terminal.screen.snapshot(), *window.borrow_and_update());
        let before = seen.as_ref().filter(|(_, before)| *before == size).map(|(seen, _)| seen);
        let step = draw_screen(&now, before, size);
        if ToWatcher::Draw(step.into_bytes()).send(to).await.is_err() {
            return;
        }
        if let Some(how) = how {
            let _ = timeout(END_WAIT_MAX, ToWatcher::Over(how).send(to)).await;
            return;
        }
        seen = Some((now, size));
        sleep(UPDATE_INTERVAL).await;
        tokio::select! {
            _ = changes.changed() => {}
            _ = window.changed() => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
    }
}
