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
//! | `creation_keys` | idempotency keys of creations that are being written      |
//! | `waiters`       | which task waits for which                                |
//! | `residents`     | started resident agents                                   |
//! | `quotas`        | how many messages are queued in which inbox               |
//! | `sent_requests` | requests to peers that this process has handled           |
//! | `request_waits` | which task waits for the answer of which agent            |
//! | `notifier`      | followers of the journal                                  |
//! | `deltas`        | watchers of live deltas                                   |
//! | `storage`       | whether the journal takes events                          |
//! | `followed`      | which clients that follow their tasks are present         |
//! | `call_agent_tools` | definitions of the tool `call_agent`, built once       |
//! | `pending_cancels` | tasks that are canceled when the journal can be written |
//!
//! All but the journal itself is rebuilt after a restart.

use std::num::NonZeroUsize;
use std::sync::Arc;

use antiphon_core::port::{Append, Appended, Expected, IdempotencyKey, JournalError, Read};
use antiphon_core::{Event, EventBody, Position, TaskCreated, TaskId, TaskSummary};

use crate::background::BackgroundTasks;
use crate::budget::budget_service::BudgetService;
use crate::budget::spend_cache::SpendCache;
use crate::budget::tree_usage::Trees;
use crate::deps::{RuntimeConfig, RuntimeDeps, TaskEnvironments};
use crate::dispatch::call_agent::CallAgentTools;
use crate::dispatch::pending_call::TaskOutcome;
use crate::dispatch::waiters::Waiters;
use crate::dispatch::wake_parent;
use crate::inbox::lifecycle;
use crate::inbox::quotas::InboxQuotas;
use crate::inbox::requests::SentRequests;
use crate::inbox::residents::Residents;
use crate::inbox::wait_cycle::RequestWaits;
use crate::journal_writer::JournalWriter;
use crate::orchestrator_error::OrchestratorError;
use crate::runner::followed::FollowedTrees;
use crate::storage::{StorageMonitor, StorageWait};
use crate::task::control::cancel_tree::PendingCancels;
use crate::task::control::creation_keys::CreationKeys;
use crate::task::missing_model::MissingModels;
use crate::task::schedule::deadline_clock::DeadlineClock;
use crate::task::schedule::deadlines::{self, Deadlines};
use crate::task::schedule::run_slots::RunSlots;
use crate::task::state::TaskState;
use crate::task::state::conversation_cache::ConversationCache;
use crate::task::state::reader::TaskReader;
use crate::task::state::state_cache::TaskCache;
use crate::watch::delta_watchers::DeltaWatchers;
use crate::watch::notifier::Notifier;

/// The services of one orchestrator.
pub(crate) struct Services {
    pub(crate) deps: Arc<RuntimeDeps>,
    environments: Option<Arc<dyn TaskEnvironments>>,
    pub(crate) reader: TaskReader,
    writer: JournalWriter,
    pub(crate) cache: TaskCache,
    pub(crate) budget: BudgetService,
    pub(crate) trees: Arc<Trees>,
    pub(crate) slots: RunSlots,
    pub(crate) background: BackgroundTasks,
    pub(crate) deadlines: Deadlines,
    pub(crate) time: DeadlineClock,
    pub(crate) creation_keys: CreationKeys,
    pub(crate) waiters: Waiters,
    pub(crate) residents: Residents,
    pub(crate) quotas: Arc<InboxQuotas>,
    pub(crate) sent_requests: SentRequests,
    pub(crate) request_waits: RequestWaits,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) deltas: Arc<DeltaWatchers>,
    pub(crate) storage: Arc<StorageMonitor>,
    pub(crate) followed: FollowedTrees,
    pub(crate) missing_models: MissingModels,
    pub(crate) call_agent_tools: CallAgentTools,
    pub(crate) pending_cancels: PendingCancels,
}

impl Services {
    pub(crate) fn new(
        config: RuntimeConfig,
        environments: Option<Arc<dyn TaskEnvironments>>,
    ) -> Self {
        let RuntimeConfig { deps, budget } = config;
        let deps = Arc::new(deps);
        let trees = Arc::new(Trees::default());
        let spend_cache = Arc::new(SpendCache::default());
        let quotas = Arc::new(InboxQuotas::default());
        let notifier = Arc::new(Notifier::new());
        let storage = Arc::new(StorageMonitor::default());
        let writer = JournalWriter {
            journal: Arc::clone(&deps.journal),
            prices: Arc::clone(&deps.prices),
            trees: Arc::clone(&trees),
            spend_cache: Arc::clone(&spend_cache),
            quotas: Arc::clone(&quotas),
            notifier: Arc::clone(&notifier),
            storage: Arc::clone(&storage),
        };
        Self {
            reader: TaskReader {
                journal: Arc::clone(&deps.journal),
                conversations: ConversationCache::default(),
            },
            writer,
            cache: TaskCache::default(),
            environments,
            budget: BudgetService { deps: Arc::clone(&deps), limits: budget, spend_cache },
            trees,
            slots: RunSlots::default(),
            background: BackgroundTasks::new(),
            deadlines: Deadlines::default(),
            time: DeadlineClock::new(Arc::clone(&deps.clock)),
            creation_keys: CreationKeys::default(),
            waiters: Waiters::default(),
            residents: Residents::default(),
            quotas,
            sent_requests: SentRequests::default(),
            request_waits: RequestWaits::default(),
            notifier,
            deltas: Arc::new(DeltaWatchers::new()),
            storage,
            followed: FollowedTrees::default(),
            missing_models: MissingModels::default(),
            call_agent_tools: CallAgentTools::default(),
            pending_cancels: PendingCancels::default(),
            deps,
        }
    }

    /// What a task works with. The error text is meant for the user.
    pub(crate) fn deps_of(
        &self,
        task_id: &TaskId,
        task: &TaskCreated,
    ) -> Result<Arc<RuntimeDeps>, String> {
        let own = || Ok(Arc::clone(&self.deps));
        let Some(environments) = &self.environments else { return own() };
        match environments.find(task_id, task)? {
            Some(environment) => Ok(Arc::new(self.deps.within(&environment))),
            None => own(),
        }
    }

    /// Checks that the model of a task can be called from here, if it is called from here.
    pub(crate) fn check_model(&self, state: &TaskState) -> Result<(), OrchestratorError> {
        let refuse = |reason| OrchestratorError::NoModel { task_id: state.task_id.clone(), reason };
        self.deps_of(&state.task_id, &state.created).map_err(refuse)?.check_model(state)
    }

    /// Ends everything that calls of a task left running.
    pub(crate) async fn release_tools(&self, task_id: &TaskId) {
        self.deps.tools.release(task_id).await;
        for environment in self.environments.iter().flat_map(|environments| environments.all()) {
            environment.tools.release(task_id).await;
        }
    }

    /// Appends events and notifies followers. When they end the task, wakes the tasks that wait
    /// for it and removes its resident agent.
    pub(crate) async fn append(self: &Arc<Self>, append: Append) -> Result<Appended, JournalError> {
        let ended = append.events.last().and_then(|last| TaskOutcome::of_event(last, append.at));
        let settled = deadlines::settled_by(&append.task_id, &append.events);
        let appended = self.writer.append(append).await?;
        self.deadlines.drop_settled(&settled);
        if let Some(outcome) = ended.filter(|_| !appended.deduplicated) {
            self.note_end(&appended.task_id, &outcome);
        }
        Ok(appended)
    }

    fn note_end(self: &Arc<Self>, task_id: &TaskId, outcome: &TaskOutcome) {
        self.slots.forget_stop(task_id);
        self.trees.forget(task_id);
        self.missing_models.forget(task_id);
        self.followed.forget(task_id);
        wake_parent::task_ended(self, task_id, outcome);
        lifecycle::remove_resident(self, task_id, outcome);
    }

    /// Appends events of a running task. While the journal cannot be written, tries again: what
    /// the task has done is not done a second time because it could not be recorded.
    pub(crate) async fn append_when_possible(
        self: &Arc<Self>,
        append: impl Fn() -> Append + Send + Sync,
        heartbeat: impl Fn() + Send + Sync,
    ) -> Result<Appended, JournalError> {
        let mut waiting: Option<StorageWait> = None;
        loop {
            let error = match self.append(append()).await {
                // An attempt before may have been stored although it was answered with an error.
                Err(error @ (JournalError::Stale { .. } | JournalError::Ended { .. }))
                    if waiting.is_some() =>
                {
                    match self.find_written(&append()).await {
                        Ok(Some(appended)) => return Ok(appended),
                        Ok(None) => return Err(error),
                        Err(error) => error,
                    }
                }
                answer => match answer {
                    Err(error @ JournalError::Unavailable { .. }) => error,
                    answer => return answer,
                },
            };
            heartbeat();
            let begin = || StorageWait::begin(&self.storage, &self.deps, &append().task_id);
            let wait = waiting.get_or_insert_with(begin);
            if !wait.pause(&error.to_string()).await {
                return Err(error);
            }
        }
    }

    /// Finds the events of an append in the journal, all of them in a row behind its position.
    async fn find_written(
        self: &Arc<Self>,
        append: &Append,
    ) -> Result<Option<Appended>, JournalError> {
        let (Expected::At(after) | Expected::AtOrArrivals(after)) = append.expected else {
            return Ok(None);
        };
        let (mut found, mut from): (Vec<Event>, Position) = (Vec::new(), Position(0));
        loop {
            let task_id = Some(append.task_id.clone());
            let read = Read { task_id, after: from, limit: NonZeroUsize::MAX };
            let page = self.deps.journal.read(read).await?;
            if page.events.is_empty() {
                break;
            }
            from = page.next;
            found.extend(page.events.into_iter().filter(|event| event.seq > after));
        }
        let same = |events: &&[Event]| events.iter().map(|event| &event.body).eq(&append.events);
        let Some(last) = found.windows(append.events.len()).find(same).and_then(<[Event]>::last)
        else {
            return Ok(None);
        };
        let (task_id, position, seq) = (append.task_id.clone(), last.position, last.seq);
        let appended = Appended { task_id, position, seq, deduplicated: false };
        self.writer.found_written(append, &appended);
        if let Some(outcome) = TaskOutcome::of_event(&last.body, last.at) {
            self.note_end(&appended.task_id, &outcome);
        }
        Ok(Some(appended))
    }

    /// Appends directly after the summary's last event. Returns false when another writer was
    /// first.
    pub(crate) async fn append_after(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
    ) -> Result<bool, OrchestratorError> {
        self.append_once_after(summary, events, None).await
    }

    /// The same, once for each key: what was written under the key before counts as written.
    pub(crate) async fn append_once_after(
        self: &Arc<Self>,
        summary: &TaskSummary,
        events: Vec<EventBody>,
        key: Option<IdempotencyKey>,
    ) -> Result<bool, OrchestratorError> {
        let append = Append {
            task_id: summary.task_id.clone(),
            expected: Expected::At(summary.seq),
            at: self.deps.clock.now(),
            events,
            key,
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
