//! Somebody who watches.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{Glass, Watching};
use crate::paint::paint;
use crate::size::Size;
use crate::wire::{FromWatcher, ToWatcher, VERSION};

/// How long somebody may take to say who they are.
const HELLO_MAX: Duration = Duration::from_secs(5);

/// The shortest time between two steps: more often is more than anybody sees.
const STEP_EVERY: Duration = Duration::from_millis(10);

/// How long somebody may take to see the end.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Until they go, or the program has ended.
pub(super) async fn attend(number: u64, mut socket: UnixStream, glass: Arc<Glass>) {
    let hello = timeout(HELLO_MAX, FromWatcher::receive(&mut socket)).await;
    let Ok(Ok(Some(FromWatcher::Hello { version, watching, window }))) = hello else { return };
    if version != VERSION {
        let why = format!("this terminal speaks version {VERSION}, not {version}");
        let _ = timeout(FAREWELL_MAX, ToWatcher::Refused(why).send(&mut socket)).await;
        return;
    }
    let seat = Seat::take(number, watching, window, &glass);
    let (mut hears, mut says) = socket.split();
    tokio::select! {
        () = draw(&mut says, &seat) => {}
        () = listen(&mut hears, &seat) => {}
    }
}

/// The place of somebody who watches. Dropped, their window no longer counts.
struct Seat<'a> {
    number: u64,
    watching: Watching,
    window: watch::Sender<Size>,
    glass: &'a Glass,
}

impl<'a> Seat<'a> {
    fn take(number: u64, watching: Watching, window: Size, glass: &'a Glass) -> Self {
        let seat = Self { number, watching, window: watch::Sender::new(window), glass };
        seat.resize(window);
        seat
    }

    fn resize(&self, window: Size) {
        self.window.send_replace(window);
        match self.watching {
            Watching::Control => self.glass.set_window(self.number, Some(window)),
            Watching::ReadOnly => {}
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.glass.set_window(self.number, None);
    }
}

/// What they say.
async fn listen(from: &mut (impl AsyncRead + Unpin), seat: &Seat<'_>) {
    while let Ok(Some(said)) = FromWatcher::receive(from).await {
        match (said, seat.watching) {
            (FromWatcher::Keys(keys), Watching::Control) => seat.glass.keyboard.type_in(keys).await,
            (FromWatcher::Keys(_), Watching::ReadOnly) => {}
            (FromWatcher::Window(window), _) => seat.resize(window),
            (FromWatcher::Hello { .. }, _) => return,
        }
    }
}

/// What they see, step by step.
async fn draw(to: &mut (impl AsyncWrite + Unpin), seat: &Seat<'_>) {
    let mut changes = seat.glass.screen.changes();
    let mut window = seat.window.subscribe();
    let mut over = seat.glass.over.clone();
    let mut seen: Option<(vt100::Screen, Size)> = None;
    loop {
        changes.mark_unchanged();
        let how = over.borrow_and_update().clone();
        let (now, size) = (seat.glass.screen.snapshot(), *window.borrow_and_update());
        let before = seen.as_ref().filter(|(_, before)| *before == size).map(|(seen, _)| seen);
        let step = paint(&now, before, size);
        if ToWatcher::Draw(step.into_bytes()).send(to).await.is_err() {
            return;
        }
        if let Some(how) = how {
            let _ = timeout(FAREWELL_MAX, ToWatcher::Over(how).send(to)).await;
            return;
        }
        seen = Some((now, size));
        sleep(STEP_EVERY).await;
        tokio::select! {
            _ = changes.changed() => {}
            _ = window.changed() => {}
            _ = over.wait_for(Option::is_some) => {}
        }
    }
}
