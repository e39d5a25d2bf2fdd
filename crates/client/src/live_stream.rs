//! Events as they come, with live deltas between them.

use antiphon_api::JournalEventQuery;
use antiphon_core::{Seq, TaskId};

use crate::client::Client;
use crate::error::ClientError;
use crate::event_stream::{Deltas, ItemStream, Reader, Scope};
use crate::live_delta::StreamItem;
use crate::retry_policy::RetryPolicy;

/// Events of a task or of the journal, with live deltas. Events are delivered like those of an
/// [`EventStream`](crate::EventStream): each once and in order. Deltas are not repeated when the connection
/// broke; the event with the whole text is.
pub struct LiveStream {
    items: ItemStream,
}

impl Client {
    /// Events and live deltas of a task, see [`Client::task_events`].
    pub fn live_task_events(&self, task_id: TaskId, after: Seq, retry: RetryPolicy) -> LiveStream {
        let scope = Scope::Task { task_id, after, reader: Reader::Anyone };
        LiveStream { items: ItemStream::new(self.clone(), scope, Deltas::Included, retry) }
    }

    /// Events and live deltas of the journal, see [`Client::journal_events`].
    pub fn live_journal_events(&self, query: JournalEventQuery, retry: RetryPolicy) -> LiveStream {
        let scope = Scope::Journal { query: JournalEventQuery { deltas: false, ..query } };
        LiveStream { items: ItemStream::new(self.clone(), scope, Deltas::Included, retry) }
    }
}

impl LiveStream {
    /// The next event or delta, or `None` after the last event of a task. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        self.items.next().await
    }
}
