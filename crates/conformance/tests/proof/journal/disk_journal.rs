//! A journal that stores its appends and replays them when it is opened.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks, MemoryJournal};
use antiphon_core::port::{
    AgentQuery, Append, Appended, Expected, IdempotencyKey, Journal, JournalError, JournalLog, Read,
};
use antiphon_core::{DayRange, InteractionId, LiveAgent, Position, Replied, Seq, Spending};
use async_trait::async_trait;

/// The stored appends.
pub(super) type Disk = Arc<Mutex<Vec<Append>>>;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum DiskFault {
    LosesTheLastOfMany,
    Leaps,
    ForgetsKeys,
    ForgetsEnds,
    ForgetsAgents,
    ForgetsWhatArrived,
    TakesAllForArrivals,
    ForgetsReplies,
    ForgetsAnswers,
    ForgetsSpending,
}

pub(super) struct DiskJournal {
    disk: Disk,
    fault: Option<DiskFault>,
    memory: MemoryJournal,
    found: usize,
}

impl DiskJournal {
    pub(super) async fn open(disk: &Disk, fault: Option<DiskFault>) -> DelegatingJournal<Self> {
        let mut appends = disk.lock().unwrap().clone();
        if fault == Some(DiskFault::LosesTheLastOfMany) && appends.len() > 4 {
            appends.pop();
        }
        let memory = MemoryJournal::new();
        let found = appends.len();
        for mut append in appends {
            if fault == Some(DiskFault::ForgetsKeys) {
                append.key = None;
            }
            memory.append(append).await.unwrap();
        }
        DelegatingJournal(Self { disk: Arc::clone(disk), fault, memory, found })
    }

    /// Whether it was opened again and has this fault.
    fn forgot(&self, fault: DiskFault) -> bool {
        self.fault == Some(fault) && self.found > 0
    }

    /// The expected position, changed by the fault.
    async fn believed(&self, append: &Append) -> Expected {
        let Expected::AtOrArrivals(seq) = append.expected else { return append.expected };
        let read = Read {
            task_id: Some(append.task_id.clone()),
            after: Position(0),
            limit: NonZeroUsize::MAX,
        };
        let actual = Seq(self.memory.read(read).await.unwrap().events.len() as u64);
        if self.forgot(DiskFault::TakesAllForArrivals) && seq <= actual {
            return Expected::At(actual);
        }
        if self.forgot(DiskFault::ForgetsWhatArrived) {
            return Expected::At(seq);
        }
        append.expected
    }
}

#[async_trait]
impl JournalHooks for DiskJournal {
    fn inner(&self) -> &dyn Journal {
        &self.memory
    }

    async fn append(&self, mut append: Append) -> Result<Appended, JournalError> {
        append.expected = self.believed(&append).await;
        let answer = self.inner().append(append.clone()).await;
        match (answer, self.fault) {
            (Err(JournalError::Ended { task_id }), Some(DiskFault::ForgetsEnds)) => {
                let reason = "it should be over".to_owned();
                Err(JournalError::Invalid { task_id, reason })
            }
            (Ok(mut appended), fault) => {
                if !appended.deduplicated {
                    self.disk.lock().unwrap().push(append);
                }
                if fault == Some(DiskFault::Leaps) && self.found == 3 {
                    appended.position = Position(appended.position.0 + 32);
                }
                Ok(appended)
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn agents(&self, query: AgentQuery) -> Result<Vec<LiveAgent>, JournalError> {
        let mut agents = self.inner().agents(query).await?;
        if self.forgot(DiskFault::ForgetsAgents) {
            agents.clear();
        }
        Ok(agents)
    }

    async fn reply(&self, request: InteractionId) -> Result<Option<Replied>, JournalError> {
        if self.forgot(DiskFault::ForgetsReplies) {
            return Ok(None);
        }
        self.inner().reply(request).await
    }

    async fn spending(&self, days: DayRange) -> Result<Spending, JournalError> {
        if self.forgot(DiskFault::ForgetsSpending) {
            return Ok(Spending::default());
        }
        self.inner().spending(days).await
    }

    async fn answered(&self, key: &IdempotencyKey) -> Result<Option<Appended>, JournalError> {
        if self.forgot(DiskFault::ForgetsAnswers) {
            return Ok(None);
        }
        self.inner().answered(key).await
    }
}
