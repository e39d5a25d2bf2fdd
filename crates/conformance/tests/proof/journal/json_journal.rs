//! A journal that stores its events as JSON text, as a table would.

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{Journal, JournalError, Page, Read};

use async_trait::async_trait;

pub(super) struct JsonJournal {
    inner: MemoryJournal,
}

impl JsonJournal {
    pub(super) fn new() -> DelegatingJournal<Self> {
        DelegatingJournal(Self { inner: MemoryJournal::new() })
    }
}

#[async_trait]
impl JournalHooks for JsonJournal {
    fn inner(&self) -> &dyn Journal {
        &self.inner
    }

    async fn read(&self, read: Read) -> Result<Page, JournalError> {
        let mut page = self.inner().read(read).await?;
        for event in &mut page.events {
            let text = serde_json::to_string(event).unwrap();
            *event = serde_json::from_str(&text).unwrap();
        }
        Ok(page)
    }
}
