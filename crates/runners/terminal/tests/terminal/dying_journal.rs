//! A journal that fails once, just before or just after a message is written down as typed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::EventBody;
use antiphon_core::port::{Append, Appended, Journal, JournalError};
use async_trait::async_trait;

/// When it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    BeforeWriting,
    AfterWriting,
}

pub(crate) struct DyingJournal {
    journal: MemoryJournal,
    death: Death,
    died: AtomicBool,
}

impl DyingJournal {
    pub(crate) fn new(death: Death) -> Arc<DelegatingJournal<Self>> {
        let died = AtomicBool::new(false);
        Arc::new(DelegatingJournal(Self { journal: MemoryJournal::new(), death, died }))
    }
}

#[async_trait]
impl JournalHooks for DyingJournal {
    fn inner(&self) -> &dyn Journal {
        &self.journal
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let types = |body: &EventBody| matches!(body, EventBody::MessageAppended(appended) if appended.queued.is_some());
        let dies = append.events.iter().any(types) && !self.died.swap(true, Ordering::SeqCst);
        let failed = || JournalError::Unavailable { reason: "everything dies".to_owned() };
        if dies && self.death == Death::BeforeWriting {
            return Err(failed());
        }
        let appended = self.inner().append(append).await?;
        if dies { Err(failed()) } else { Ok(appended) }
    }
}
