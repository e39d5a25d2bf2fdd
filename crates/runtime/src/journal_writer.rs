//! The only way events get into the journal. Counts what they spend and what they queue, and notifies
//! followers. A refused append changes nothing.

use std::sync::Arc;

use antiphon_core::port::{Append, Appended, Journal, JournalError};
use antiphon_core::{EventBody, PriceTable};

use crate::budget::spend_cache::SpendCache;
use crate::budget::tree_usage::Trees;
use crate::inbox::quotas::InboxQuotas;
use crate::storage::StorageMonitor;
use crate::watch::notifier::Notifier;
use crate::watch::recent_events;

/// Appends events and keeps the caches that depend on them current.
pub(crate) struct JournalWriter {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) prices: Arc<PriceTable>,
    pub(crate) trees: Arc<Trees>,
    pub(crate) spend_cache: Arc<SpendCache>,
    pub(crate) quotas: Arc<InboxQuotas>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) storage: Arc<StorageMonitor>,
}

impl JournalWriter {
    /// Appends events, counts them, and notifies followers.
    pub(crate) async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let queue_changes: Vec<EventBody> =
            append.events.iter().filter(|body| changes_inbox(body)).cloned().collect();
        let task_id = append.task_id.clone();
        let asks = append.events.iter().any(asks_for_approval);
        let counted = self.quotas.expect(&task_id, &queue_changes);
        // The bodies are copied only when there are followers.
        let channels = self.notifier.channels(&task_id);
        let followed = (!channels.is_empty()).then(|| (append.at, append.events.clone()));
        let spending = self.spend_cache.begin_append(&append, &self.trees);
        let appended = self.journal.append(append).await;
        spending.end(&appended, &self.prices);
        self.storage.note(&appended);
        if appended.as_ref().map_or(true, |appended| appended.deduplicated) {
            self.quotas.release(&task_id, &counted);
        }
        let appended = appended?;
        if let Some((at, bodies)) = followed
            && !appended.deduplicated
        {
            let events = recent_events::events_of(&appended, &task_id, at, bodies);
            for channel in &channels {
                channel.recent.add(&events);
            }
        }
        self.notifier.notify(&appended.task_id, appended.position);
        if asks {
            self.notifier.notify_approval();
        }
        if !appended.deduplicated {
            self.quotas.note(&appended.task_id, &queue_changes);
        }
        Ok(appended)
    }

    /// Counts an append that the journal holds although it answered with an error.
    pub(crate) fn found_written(&self, append: &Append, appended: &Appended) {
        let queue_changes: Vec<EventBody> =
            append.events.iter().filter(|body| changes_inbox(body)).cloned().collect();
        self.notifier.notify(&appended.task_id, appended.position);
        if append.events.iter().any(asks_for_approval) {
            self.notifier.notify_approval();
        }
        self.quotas.note(&appended.task_id, &queue_changes);
    }
}

fn asks_for_approval(body: &EventBody) -> bool {
    matches!(body, EventBody::ApprovalRequested(_))
}

/// Whether the event changes the content of an inbox.
fn changes_inbox(body: &EventBody) -> bool {
    let takes = |body: &EventBody| matches!(body, EventBody::MessageAppended(appended) if appended.queued.is_some());
    matches!(body, EventBody::MessageQueued(_) | EventBody::Replied(_))
        || takes(body)
        || body.ends_task()
}
