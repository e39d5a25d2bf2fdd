//! How many messages are queued in which inbox, and whether one more fits.
//!
//! The counts are a cache: an inbox is counted from the journal when the first message arrives, and
//! along with every append from then on. So a full inbox is refused without reading the task.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{EventBody, InteractionId, MessageQueued, PeerInputClass, Sender, TaskId};

/// Maximum number of queued messages in one inbox, separately for those that wake its agent and those
/// that do not, so that the latter never block the former.
pub const INBOX_MAX: usize = 4096;

/// Maximum number of queued messages of one sender in one inbox.
pub const INBOX_OF_SENDER_MAX: usize = 1024;

/// Maximum bytes of queued messages, again separately. All of them have to fit into one append when
/// the agent is restarted.
pub const INBOX_BYTES_MAX: usize = 12 * 1024 * 1024;

/// Usage of every inbox that received a message in this process.
#[derive(Debug, Default)]
pub(crate) struct InboxQuotas(Mutex<HashMap<TaskId, InboxUsage>>);

#[derive(Debug, Default)]
struct InboxUsage {
    waiting: HashMap<InteractionId, Waiting>,
    of_sender: HashMap<(Sender, Kind), usize>,
    /// Number and bytes of the queued messages of each kind.
    of_kind: HashMap<Kind, (usize, usize)>,
    /// Ids that left while the inbox is being counted; `None` once it is counted.
    gone: Option<HashSet<InteractionId>>,
}

#[derive(Debug)]
struct Waiting {
    from: Sender,
    kind: Kind,
    bytes: usize,
    progress: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Wakes,
    Quiet,
}

impl Kind {
    fn of(queued: &MessageQueued) -> Self {
        if queued.wakes() { Self::Wakes } else { Self::Quiet }
    }
}

/// A reservation for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reservation {
    /// One more message is counted.
    New {
        /// The outdated progress message that this one replaces.
        replaces: Option<InteractionId>,
    },
    /// The message is counted already.
    AlreadyCounted,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The limit of the inbox.
    Inbox,
    /// The limit of this sender.
    Sender,
}

impl InboxQuotas {
    fn boxes(&self) -> MutexGuard<'_, HashMap<TaskId, InboxUsage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an inbox has been counted. If not, ids that leave it are noted from now on.
    pub(crate) fn is_counted(&self, task_id: &TaskId) -> bool {
        let mut boxes = self.boxes();
        match boxes.get(task_id) {
            Some(known) => known.gone.is_none(),
            None => {
                let gone = Some(HashSet::new());
                boxes.insert(task_id.clone(), InboxUsage { gone, ..InboxUsage::default() });
                false
            }
        }
    }

    /// Counts the queue as it was read from the journal.
    pub(crate) fn count(&self, task_id: &TaskId, queue: &[MessageQueued]) {
        let mut boxes = self.boxes();
        let Some(known) = boxes.get_mut(task_id) else { return };
        let Some(gone) = known.gone.take() else { return };
        for queued in queue.iter().filter(|queued| !gone.contains(&queued.id)) {
            known.add(queued);
        }
    }

    /// Reserves room for one more message, and returns the one it replaces. Responses and lifecycle
    /// notices always fit: their senders are bounded.
    pub(crate) fn reserve(
        &self,
        task_id: &TaskId,
        queued: &MessageQueued,
    ) -> Result<Reservation, Full> {
        let mut boxes = self.boxes();
        let known = boxes.entry(task_id.clone()).or_default();
        if known.waiting.contains_key(&queued.id) {
            return Ok(Reservation::AlreadyCounted);
        }
        let like_it = |(_, waiting): &(&InteractionId, &Waiting)| {
            is_replaceable(queued) && waiting.progress && waiting.from == queued.from
        };
        let replaces = known.waiting.iter().find(like_it).map(|(id, _)| *id);
        if let Some(old) = replaces {
            known.remove(old);
        } else if is_bounded(queued.class) {
            let kind = Kind::of(queued);
            let (count, bytes) = known.of_kind.get(&kind).copied().unwrap_or_default();
            if count >= INBOX_MAX || bytes + queued.bytes() > INBOX_BYTES_MAX {
                return Err(Full::Inbox);
            }
            let own = known.of_sender.get(&(queued.from.clone(), kind));
            if own.is_some_and(|n| *n >= INBOX_OF_SENDER_MAX) {
                return Err(Full::Sender);
            }
        }
        known.add(queued);
        Ok(Reservation::New { replaces })
    }

    /// Counts messages that are about to be recorded, and returns those that were not counted before.
    /// Counting comes first, because a task may read a message as soon as it is recorded.
    pub(crate) fn expect(&self, task_id: &TaskId, events: &[EventBody]) -> Vec<InteractionId> {
        let mut boxes = self.boxes();
        let Some(known) = boxes.get_mut(task_id) else { return Vec::new() };
        let mut counted = Vec::new();
        for body in events {
            if let EventBody::MessageQueued(queued) = body
                && known.add(queued)
            {
                counted.push(queued.id);
            }
        }
        counted
    }

    /// Undoes the counting of messages that were not recorded.
    pub(crate) fn release(&self, task_id: &TaskId, ids: &[InteractionId]) {
        if let Some(known) = self.boxes().get_mut(task_id) {
            for id in ids {
                known.discard(*id);
            }
        }
    }

    /// Drops the counts of an ended task.
    pub(crate) fn forget(&self, task_id: &TaskId) {
        self.boxes().remove(task_id);
    }

    /// Updates the counts after events were recorded.
    pub(crate) fn note(&self, task_id: &TaskId, events: &[EventBody]) {
        let mut boxes = self.boxes();
        let Some(known) = boxes.get_mut(task_id) else { return };
        for body in events {
            if let Some(id) = body.leaves_inbox() {
                known.remove(id);
            }
            if body.ends_task() {
                boxes.remove(task_id);
                return;
            }
        }
    }
}

impl InboxUsage {
    /// Returns whether the message was not counted before.
    fn add(&mut self, queued: &MessageQueued) -> bool {
        if self.waiting.contains_key(&queued.id) {
            return false;
        }
        let (kind, bytes) = (Kind::of(queued), queued.bytes());
        let (from, progress) = (queued.from.clone(), is_replaceable(queued));
        *self.of_sender.entry((from.clone(), kind)).or_default() += 1;
        let of_kind = self.of_kind.entry(kind).or_default();
        *of_kind = (of_kind.0 + 1, of_kind.1 + bytes);
        self.waiting.insert(queued.id, Waiting { from, kind, bytes, progress });
        true
    }

    fn remove(&mut self, id: InteractionId) {
        if let Some(gone) = &mut self.gone {
            gone.insert(id);
        }
        self.discard(id);
    }

    fn discard(&mut self, id: InteractionId) {
        let Some(Waiting { from, kind, bytes, .. }) = self.waiting.remove(&id) else { return };
        if let Some((count, sum)) = self.of_kind.get_mut(&kind) {
            (*count, *sum) = (count.saturating_sub(1), sum.saturating_sub(bytes));
        }
        if self.waiting.is_empty() {
            // An empty inbox of an agent at rest takes no memory for what it once held.
            self.waiting = HashMap::new();
            self.of_sender = HashMap::new();
            self.of_kind = HashMap::new();
            return;
        }
        let own = (from, kind);
        if let Some(n) = self.of_sender.get_mut(&own) {
            *n -= 1;
            if *n == 0 {
                self.of_sender.remove(&own);
            }
        }
    }
}

/// Whether a later message of the same kind replaces it. A request is never replaced.
fn is_replaceable(queued: &MessageQueued) -> bool {
    queued.is_progress() && !queued.expects_answer()
}

fn is_bounded(class: PeerInputClass) -> bool {
    match class {
        PeerInputClass::ActionableMessage
        | PeerInputClass::ActionableRequest
        | PeerInputClass::SilentRequest
        | PeerInputClass::Ack
        | PeerInputClass::PlainEvent => true,
        PeerInputClass::Response
        | PeerInputClass::PeerLifecycleAdded
        | PeerInputClass::PeerLifecycleRetired
        | PeerInputClass::PeerLifecycleUnwired
        | PeerInputClass::PeerLifecycleKickoffFailed
        | PeerInputClass::PeerLifecycleKickoffCancelled => false,
    }
}
