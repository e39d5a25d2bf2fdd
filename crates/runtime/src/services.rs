//! The services behind an [`Orchestrator`](crate::Orchestrator). Each owns one piece of state; an
//! operation that needs several of them is a function in the module of its subject that takes
//! [`Services`].
//!
//! | service         | owns                                                      |
//! |-----------------|-----------------------------------------------------------|
//! | `reader`        | nothing: rebuilds tasks from the journal                  |
//! | `writer`        | the only way events get into the journal                  |
//! | `cache`         | states of new and of suspended resident tasks             |
//! | `budget`        | spend limits, and what was spent this month               |
//! | `trees`         | totals of the trees whose tasks run                       |
//! | `slots`         | running tasks, and the queue for run slots                |
//! | `background`    | spawned futures, and the shutdown                         |
//! | `deadlines`     | when approvals, requests and waits are over               |
//! | `waiters`       | which task waits for which                                |
//! | `residents`     | started resident agents                                   |
//! | `quotas`        | how many messages are queued in which inbox               |
//! | `sent_requests` | requests to peers that this process has handled           |
//! | `notifier`      | followers of the journal                                  |
//! | `deltas`        | watchers of live deltas                                   |
//!
//! All but the journal itself is rebuilt after a restart.

use std::sync::Arc;

use antiphon_core::port::{Append, Appended, Expected, JournalError};
use antiphon_core::{EventBody, TaskSummary};

use crate::background::BackgroundTasks;
use crate::budget::budget_service::BudgetService;
use crate::budget::spend_cache::SpendCache;
use crate::budget::tree_usage::Trees;
use crate::deps::{RuntimeConfig, RuntimeDeps};
use crate::dispatch::pending_call::Outcome;
use crate::dispatch::waiters::Waiters;
use crate::dispatch::wake_parent;
use crate::inbox::lifecycle;
use crate::inbox::quotas::InboxQuotas;
use crate::inbox::requests::SentRequests;
use crate::inbox::residents::Residents;
use crate::journal_writer::JournalWriter;
use crate::orchestrator_error::OrchestratorError;
use crate::task::schedule::deadlines::Deadlines;
use crate::task::schedule::run_slots::RunSlots;
use crate::task::state::reader::TaskReader;
use crate::task::state::state_cache::TaskCache;
use crate::watch::delta::Deltas;
use crate::watch::notifier::Notifier;

/// The services of one orchestrator.
pub(crate) struct Services {
    pub(crate) deps: RuntimeDeps,
    pub(crate) reader: TaskReader,
    writer: JournalWriter,
    pub(crate) cache: TaskCache,
    pub(crate) budget: BudgetService,
    pub(crate) trees: Arc<Trees>,
    pub(crate) slots: RunSlots,
    pub(crate) background: BackgroundTasks,
    pub(crate) deadlines: Deadlines,
    pub(crate) waiters: Waiters,
    pub(crate) residents: Residents,
    pub(crate) quotas: Arc<InboxQuotas>,
    pub(crate) sent_requests: SentRequests,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) deltas: Arc<Deltas>,
}

impl Services {
    pub(crate) fn new(config: RuntimeConfig) -> Self {
        let RuntimeConfig { deps, budget } = config;
        let trees = Arc::new(Trees::default());
        let spend_cache = Arc::new(SpendCache::default());
        let quotas = Arc::new(InboxQuotas::default());
        let notifier = Arc::new(Notifier::new());
        let writer = JournalWriter {
            journal: Arc::clone(&deps.journal),
            prices: Arc::clone(&deps.prices),
            trees: Arc::clone(&trees),
            spend_cache: Arc::clone(&spend_cache),
            quotas: Arc::clone(&quotas),
            notifier: Arc::clone(&notifier),
        };
        Self {
            reader: TaskReader { journal: Arc::clone(&deps.journal) },
            writer,
            cache: TaskCache::default(),
            budget: BudgetService { deps: deps.clone(), limits: budget, spend_cache },
            trees,
            slots: RunSlots::default(),
            background: BackgroundTasks::new(),
            deadlines: Deadlines::default(),
            waiters: Waiters::default(),
            residents: Residents::default(),
            quotas,
            sent_requests: SentRequests::default(),
            notifier,
            deltas: Arc::new(Deltas::new()),
            deps,
        }
    }

    /// Appends events and notifies followers. When they end the task, wakes the tasks that wait
    /// for it and removes its resident agent.
    pub(crate) async fn append(self: &Arc<Self>, append: Append) -> Result<Appended, JournalError> {
        let ended = append.events.last().and_then(|last| Outcome::of_event(last, append.at));
        let appended = self.writer.append(append).await?;
        if let Some(outcome) = ended.filter(|_| !appended.deduplicated) {
            wake_parent::task_ended(self, &appended.task_id, &outcome);
            lifecycle::remove_resident(self, &appended.task_id, &outcome);
        }
        Ok(appended)
    }

    /// Appends directly after the summary's last event. Returns false when another writer was
    /// first.
    pub(crate) async fn append_after(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
    ) -> Result<bool, OrchestratorError> {
        let append = Append {
            task_id: summary.task_id.clone(),
            expected: Expected::At(summary.seq),
            at: self.deps.clock.now(),
            events,
            key: None,
        };
        let services = Arc::clone(self);
        self.background
            .run_detached(async move {
                match services.append(append).await {
                    Ok(_) => Ok(true),
                    Err(JournalError::Stale { .. } | JournalError::Ended { .. }) => Ok(false),
                    Err(error) => Err(error.into()),
                }
            })
            .await
    }
}
