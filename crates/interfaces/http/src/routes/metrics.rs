//! `GET /metrics`: metrics for Prometheus. Gauges that do not follow from events, such as queue lengths, are
//! read from the journal at each scrape. When the journal fails, the scrape fails with 503 rather than
//! return old values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{ErrorCode, Position, TaskId, TaskStatus};
use antiphon_interface_transport::openapi::{ApiRouter, DescribeRoute, Tag, get_with};
use antiphon_interface_transport::{ApiError, AppState};
use antiphon_project::QUEUED_INTERACTIONS_MAX;
use antiphon_runtime::{
    BreakerState, BudgetStatus, Orchestrator, OrchestratorError, StorageStatus, is_resident,
};
use antiphon_telemetry::{METRICS_CONTENT_TYPE, Metrics};
use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Tasks and agents that are counted, at most.
const COUNTED_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// The reason of tasks that wait until the journal can be written.
const STORAGE: &str = "storage";

/// The other reasons. A dashboard finds each of them from the first scrape on.
const WAIT_REASONS: [&str; 6] = ["approval", "resume", "tool_result", "budget", "model", "peer"];

/// The queue of messages to tasks that hold no inbox.
const TASKS: &str = "tasks";

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let scrape = get_with(scrape, |route| {
        let route = route.describe("metrics", Tag::Server, "Metrics for Prometheus.");
        let media_type = METRICS_CONTENT_TYPE.split(';').next().unwrap_or_default();
        route.responds(200, media_type, "The metrics.").fails(&[404])
    });
    ApiRouter::new().api_route("/metrics", scrape)
}

/// Serializes scrapes: gauges are set and rendered together.
#[derive(Clone, Default)]
pub(crate) struct ScrapeLock(Arc<Mutex<()>>);

async fn scrape(
    State(state): State<Arc<AppState>>,
    Extension(ScrapeLock(lock)): Extension<ScrapeLock>,
) -> Result<Response, ApiError> {
    let Some(telemetry) = &state.telemetry else {
        return Err(ApiError::new(ErrorCode::NotFound, "this server has no metrics"));
    };
    let gauges = Gauges::read(&state.deps.orchestrator).await?;
    let text = {
        // Concurrent scrapes must not see gauges that are half set.
        let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        gauges.set(&telemetry.metrics);
        telemetry.render()
    };
    Ok(([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], text).into_response())
}

/// Values that are read from the journal at each scrape.
struct Gauges {
    head: Position,
    agents: usize,
    tasks: HashMap<TaskStatus, usize>,
    queues: BTreeMap<String, usize>,
    budget: BudgetStatus,
    /// Tasks by what they wait for. Reasons without a task are there too.
    waiting: BTreeMap<String, usize>,
    storage: StorageStatus,
    breakers: BTreeMap<String, BreakerState>,
}

impl Gauges {
    async fn read(orchestrator: &Orchestrator) -> Result<Self, OrchestratorError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: COUNTED_MAX };
        let unfinished = orchestrator.tasks(query).await?;
        let mut tasks: HashMap<TaskStatus, usize> = HashMap::new();
        let mut waiting = BTreeMap::from(WAIT_REASONS.map(|reason| (reason.to_owned(), 0)));
        for task in &unfinished {
            *tasks.entry(task.status).or_default() += 1;
            if let Some(Ok(Value::String(reason))) = task.waiting_for.map(serde_json::to_value) {
                *waiting.entry(reason).or_default() += 1;
            }
        }
        let storage = orchestrator.storage().await;
        waiting.insert(STORAGE.to_owned(), storage.tasks_waiting);
        let inboxes: HashMap<TaskId, String> = unfinished
            .into_iter()
            .filter(is_resident)
            .map(|task| (task.task_id, format!("inbox:{}", task.agent)))
            .collect();
        let mut queues: BTreeMap<String, usize> =
            inboxes.values().map(|queue| (queue.clone(), 0)).collect();
        queues.insert(TASKS.to_owned(), 0);
        for queued in orchestrator.queued(QUEUED_INTERACTIONS_MAX).await? {
            let queue = inboxes.get(&queued.task_id).map_or(TASKS, String::as_str);
            *queues.entry(queue.to_owned()).or_default() += 1;
        }
        let live = orchestrator.agents(COUNTED_MAX).await?.into_iter().map(|live| live.task_id);
        let agents: HashSet<TaskId> = live.chain(inboxes.into_keys()).collect();
        let (head, budget) = (orchestrator.head().await?, orchestrator.budget().await?);
        let breakers = orchestrator.breakers();
        let agents = agents.len();
        Ok(Self { head, agents, tasks, queues, budget, waiting, storage, breakers })
    }

    fn set(&self, metrics: &Metrics) {
        metrics.journal_head(self.head);
        metrics.active_agents(self.agents);
        for status in [TaskStatus::Pending, TaskStatus::Running, TaskStatus::InputRequired] {
            metrics.tasks_unfinished(status, self.tasks.get(&status).copied().unwrap_or_default());
        }
        for (reason, tasks) in &self.waiting {
            metrics.tasks_waiting(reason, *tasks);
        }
        metrics.tasks_stuck(self.storage.tasks_stuck);
        metrics.journal(self.storage.fault.is_none(), self.storage.journal_errors);
        for (provider, state) in &self.breakers {
            metrics.breaker(
                provider,
                match state {
                    BreakerState::Closed => antiphon_telemetry::BreakerState::Closed,
                    BreakerState::HalfOpen => antiphon_telemetry::BreakerState::HalfOpen,
                    BreakerState::Open => antiphon_telemetry::BreakerState::Open,
                },
            );
        }
        for scope in std::iter::once(&self.budget.total).chain(&self.budget.keys) {
            let payer = scope.key_id.as_ref().map_or("total".to_owned(), |id| format!("key:{id}"));
            for (window, name) in [(&scope.day, "day"), (&scope.month, "month")] {
                let (spent, limit) = (window.spent_nano_usd, window.limit_nano_usd);
                metrics.budget(&format!("{payer}:{name}"), spent, limit);
            }
        }
        metrics.queue_sizes(self.queues.iter().map(|(queue, size)| (queue.as_str(), *size)));
    }
}
