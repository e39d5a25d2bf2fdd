//! Faults of reading.

use antiphon_core::port::{JournalError, JournalLog, Page, Read};
use antiphon_core::{Event, Position};
use serde_json::Value;
use std::num::NonZeroUsize;

use super::{Fault, FaultyJournal};

impl FaultyJournal {
    pub(super) async fn read_wrongly(&self, read: Read) -> Result<Page, JournalError> {
        if self.fault == Fault::ReadsByPrefix {
            return self.reading_by_prefix(read).await;
        }
        if self.fault == Fault::RefusesToReadUnknownTasks
            && let Some(task_id) = read.task_id.clone()
            && self.last(&task_id).await.is_none()
        {
            return Err(JournalError::Invalid { task_id, reason: "unknown".to_owned() });
        }
        let asked = self.asked_wrongly(read.clone()).await;
        Ok(self.shown_wrongly(&read, self.inner.read(asked).await?))
    }

    async fn asked_wrongly(&self, mut read: Read) -> Read {
        if self.fault == Fault::StartsOverBehindTheEnd && read.after > self.head().await {
            read.after = Position(0);
        }
        if self.fault == Fault::ReadsOneMore {
            read.limit = read.limit.saturating_add(1);
        }
        read
    }

    fn shown_wrongly(&self, read: &Read, mut page: Page) -> Page {
        let found = page.events.len();
        if self.fault == Fault::SkipsOneBetweenPages
            && found == read.limit.get()
            && page.next < page.head
        {
            page.next.0 += 1;
        }
        if self.fault == Fault::ForgetsWhereTheReaderWas && found == 0 {
            page.next = Position(0);
        }
        if self.fault == Fault::TakesTheTasksEndForTheHead && read.task_id.is_some() {
            page.head = page.next;
        }
        if self.fault == Fault::ShowsWritesOutOfOrder && self.has_writer() && found > 1 {
            page.events.remove(found - 2);
        }
        if self.fault == Fault::NormalizesJson {
            page.events = page.events.iter().map(normalized).collect();
        }
        page
    }

    async fn reading_by_prefix(&self, read: Read) -> Result<Page, JournalError> {
        let everything = Read { task_id: None, limit: NonZeroUsize::MAX, ..read.clone() };
        let mut page = self.inner.read(everything).await?;
        if let Some(prefix) = &read.task_id {
            page.events.retain(|event| event.task_id.as_str().starts_with(prefix.as_str()));
        }
        page.events.truncate(read.limit.get());
        page.next = page.events.last().map_or(read.after, |event| event.position);
        Ok(page)
    }
}

/// As a column of parsed JSON would return it.
fn normalized(event: &Event) -> Event {
    let text = serde_json::to_string(event).unwrap();
    let parsed: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_str(&parsed.to_string()).unwrap()
}
