//! A journal that keeps its events as text, as a table would.

use antiphon_conformance::model::MemoryJournal;
use antiphon_core::port::{Append, Appended, Journal, JournalError, Page, Read, TaskQuery};
use async_trait::async_trait;

pub(super) struct JsonJournal {
    inner: MemoryJournal,
}

impl JsonJournal {
    pub(super) fn new() -> Self {
        Self { inner: MemoryJournal::new() }
    }
}

#[async_trait]
impl Journal for JsonJournal {
    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        self.inner.append(append).await
    }

    async fn tasks(&self, query: TaskQuery) -> Result<Vec<antiphon_core::TaskId>, JournalError> {
        self.inner.tasks(query).await
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let mut page = self.inner.read(read).await?;
        for event in &mut page.events {
            let text = serde_json::to_string(event).unwrap();
            *event = serde_json::from_str(&text).unwrap();
        }
        Ok(page)
    }
}
