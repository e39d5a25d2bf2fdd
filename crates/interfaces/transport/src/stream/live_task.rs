//! The events of a task in their order, and its deltas, none before the events that it follows.

use std::pin::Pin;

use antiphon_core::port::JournalError;
use antiphon_core::{Event, Seq};
use antiphon_runtime::{Delta, DeltaWatcher, Follower, SerializedDelta, WatchedDelta};

/// The pending read of the next journal event. It survives deltas, because every new read starts with a look
/// at the journal.
type Reading = Pin<Box<dyn Future<Output = (Follower, Result<Event, JournalError>)> + Send>>;

/// A task that is followed in the journal, with its live deltas.
pub struct LiveTask {
    reading: Reading,
    /// Absent after a gap.
    deltas: Option<DeltaWatcher>,
    /// A delta that the caller has not taken.
    held: Option<Delta>,
}

/// What [`LiveTask::next`] has found.
#[derive(Debug)]
pub enum LiveItem {
    /// The next event of the journal.
    Event(Box<Event>),
    /// A delta: [`LiveTask::take_due`] returns it once its reader has reached the events that it follows.
    Delta,
    /// Deltas were missed, and no more will come: the journal has the whole text.
    DeltasMissed,
}

impl LiveTask {
    /// Follows the events of `follower`, and `deltas` if there are any.
    pub fn new(follower: Follower, deltas: Option<DeltaWatcher>) -> Self {
        Self { reading: read_on(follower), deltas, held: None }
    }

    /// Waits for the next event or delta. Events come first. Cancel safe.
    pub async fn next(&mut self) -> Result<LiveItem, JournalError> {
        let receives = self.held.is_none();
        tokio::select! {
            biased;
            (follower, event) = &mut self.reading => {
                self.reading = read_on(follower);
                event.map(Box::new).map(LiveItem::Event)
            }
            delta = receive(&mut self.deltas), if receives => match delta {
                Some(WatchedDelta::Delta(delta)) => {
                    self.held = Some(SerializedDelta::into_value(delta));
                    Ok(LiveItem::Delta)
                }
                Some(WatchedDelta::Missed(_)) | None => {
                    self.deltas = None;
                    Ok(LiveItem::DeltasMissed)
                }
            },
        }
    }

    /// The delta that arrived last, for a reader that has seen so many whole answers and the events up to `seq`. `None`:
    /// there is none, or the reader has to read on before it.
    pub fn take_due(&mut self, turn: u32, seq: Seq) -> Option<Delta> {
        self.held.take_if(|delta| delta.turn <= turn && delta.after <= seq)
    }
}

fn read_on(mut follower: Follower) -> Reading {
    Box::pin(async move {
        let event = follower.next().await;
        (follower, event)
    })
}

/// The next delta; pends forever when there are no deltas.
async fn receive(deltas: &mut Option<DeltaWatcher>) -> Option<WatchedDelta> {
    match deltas {
        None => std::future::pending().await,
        Some(deltas) => deltas.recv().await,
    }
}
