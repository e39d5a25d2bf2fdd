//! How much waits in which inbox, as long as this process runs.
//!
//! Nothing here is the truth: an inbox is counted from the journal when something first arrives, and
//! from then on along with what is written. It is what makes a bound hold without a look at the task.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use antiphon_core::{EventBody, InteractionId, MessageQueued, PeerInputClass, Sender, TaskId};

/// Interactions that may wait in one inbox: so many that wake its agent, and so many that do not, which
/// are never in the way of the others.
pub const INBOX_MAX: usize = 4096;

/// Of them, those of one sender.
pub const INBOX_OF_SENDER_MAX: usize = 1024;

/// Bytes of them, again for each kind. Everything that waits has to fit into one append when it is
/// carried over.
pub const INBOX_BYTES_MAX: usize = 12 * 1024 * 1024;

/// Every inbox that something arrived at.
#[derive(Debug, Default)]
pub(crate) struct InboxQuotas(Mutex<HashMap<TaskId, InboxUsage>>);

#[derive(Debug, Default)]
struct InboxUsage {
    waiting: HashMap<InteractionId, Waiting>,
    of_sender: HashMap<(Sender, Kind), usize>,
    /// How many of each kind there are, and how long they are together.
    of_kind: HashMap<Kind, (usize, usize)>,
    /// What left while it was counted; `None` once it is.
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

/// There is room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// For one more.
    Made {
        /// What need not be read any more then.
        replaces: Option<InteractionId>,
    },
    /// It is there already.
    Taken,
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// For anybody.
    Inbox,
    /// For this sender.
    Sender,
}

impl InboxQuotas {
    fn boxes(&self) -> MutexGuard<'_, HashMap<TaskId, InboxUsage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an inbox has been counted. If not, it is noted from now on what leaves it.
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

    /// What the journal had in an inbox a moment ago.
    pub(crate) fn count(&self, task_id: &TaskId, queue: &[MessageQueued]) {
        let mut boxes = self.boxes();
        let Some(known) = boxes.get_mut(task_id) else { return };
        let Some(gone) = known.gone.take() else { return };
        for queued in queue.iter().filter(|queued| !gone.contains(&queued.id)) {
            known.add(queued);
        }
    }

    /// Makes room for one more, and says what it makes old news. What answers a request, or tells
    /// of peers, always has room: it is bounded where it comes from.
    pub(crate) fn reserve(&self, task_id: &TaskId, queued: &MessageQueued) -> Result<Room, Full> {
        let mut boxes = self.boxes();
        let known = boxes.entry(task_id.clone()).or_default();
        if known.waiting.contains_key(&queued.id) {
            return Ok(Room::Taken);
        }
        let like_it = |(_, waiting): &(&InteractionId, &Waiting)| {
            is_old_news(queued) && waiting.progress && waiting.from == queued.from
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
        Ok(Room::Made { replaces })
    }

    /// Counts what is about to be written, and says what of it was not counted before. Once it is
    /// written it may be taken at any moment, and what was taken does not count.
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

    /// It was not written after all.
    pub(crate) fn release(&self, task_id: &TaskId, ids: &[InteractionId]) {
        if let Some(known) = self.boxes().get_mut(task_id) {
            for id in ids {
                known.discard(*id);
            }
        }
    }

    /// It is nobody's any more.
    pub(crate) fn forget(&self, task_id: &TaskId) {
        self.boxes().remove(task_id);
    }

    /// Something was written.
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
    /// Says whether it is new.
    fn add(&mut self, queued: &MessageQueued) -> bool {
        if self.waiting.contains_key(&queued.id) {
            return false;
        }
        let (kind, bytes) = (Kind::of(queued), queued.bytes());
        let (from, progress) = (queued.from.clone(), is_old_news(queued));
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
        let own = (from, kind);
        if let Some(n) = self.of_sender.get_mut(&own) {
            *n -= 1;
            if *n == 0 {
                self.of_sender.remove(&own);
            }
        }
    }
}

/// Whether the next one like it makes it old news. A request never is: somebody waits for its answer.
fn is_old_news(queued: &MessageQueued) -> bool {
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
