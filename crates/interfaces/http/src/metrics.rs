//! Metrics: every request is counted by its route, and what is counted is told to whoever may read.
//! What is not in events, such as how much waits where, is looked up when somebody asks; when the journal
//! does not answer, there are no metrics (503) rather than old ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{ErrorCode, Position, TaskId, TaskStatus};
use antiphon_runtime::{BudgetStatus, Orchestrator, OrchestratorError, is_resident};
use antiphon_telemetry::{METRICS_CONTENT_TYPE, Metrics};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api_error::ApiError;
use crate::openapi::{Tag, Telling};
use crate::room::AppState;
use crate::waiting::WAITING_MAX;

/// Tasks and agents that are counted, at most.
const COUNTED_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// The route of what has none.
const NOWHERE: &str = "nowhere";

/// The queue of what was said to tasks that are no agent's inbox.
const TASKS: &str = "tasks";

/// Counts a request, whatever is answered.
pub(crate) async fn count(
    State(room): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let (route, status) = (route.as_ref().map_or(NOWHERE, MatchedPath::as_str), response.status());
    let took = began.elapsed();
    if let Some(telemetry) = &room.telemetry {
        telemetry.metrics.http(method.as_str(), route, status.as_u16(), took);
    }
    tracing::info!(
        http.method = %method,
        http.route = route,
        http.status = status.as_u16(),
        took_ms = took.as_millis(),
        "answered"
    );
    response
}

pub(crate) fn routes() -> ApiRouter<Arc<AppState>> {
    let scrape = get_with(scrape, |route| {
        let route = route.told("metrics", Tag::Server, "What is counted, for Prometheus.");
        let kind = METRICS_CONTENT_TYPE.split(';').next().unwrap_or_default();
        route.answers(200, kind, "What is counted.").fails(&[404])
    });
    ApiRouter::new().api_route("/metrics", scrape)
}

/// Everything that is counted.
pub(crate) async fn scrape(State(room): State<Arc<AppState>>) -> Result<Response, ApiError> {
    let Some(telemetry) = &room.telemetry else {
        return Err(ApiError::new(ErrorCode::NotFound, "nothing is counted here"));
    };
    let standing = Standing::of(&room.doors.orchestrator).await?;
    let text = {
        // Two who ask at once must not see half of what is set.
        let _alone = room.scraping.lock().unwrap_or_else(PoisonError::into_inner);
        standing.set(&telemetry.metrics);
        telemetry.render()
    };
    Ok(([(CONTENT_TYPE, METRICS_CONTENT_TYPE)], text).into_response())
}

/// How things stand.
struct Standing {
    head: Position,
    agents: usize,
    tasks: HashMap<TaskStatus, usize>,
    queues: BTreeMap<String, usize>,
    budget: BudgetStatus,
}

impl Standing {
    async fn of(orchestrator: &Orchestrator) -> Result<Self, OrchestratorError> {
        let query = TaskQuery { which: TaskSelector::Unfinished, limit: COUNTED_MAX };
        let unfinished = orchestrator.tasks(query).await?;
        let mut tasks: HashMap<TaskStatus, usize> = HashMap::new();
        for task in &unfinished {
            *tasks.entry(task.status).or_default() += 1;
        }
        let inboxes: HashMap<TaskId, String> = unfinished
            .into_iter()
            .filter(is_resident)
            .map(|task| (task.task_id, format!("inbox:{}", task.agent)))
            .collect();
        let mut queues: BTreeMap<String, usize> =
            inboxes.values().map(|queue| (queue.clone(), 0)).collect();
        queues.insert(TASKS.to_owned(), 0);
        for queued in orchestrator.queued(WAITING_MAX).await? {
            let queue = inboxes.get(&queued.task_id).map_or(TASKS, String::as_str);
            *queues.entry(queue.to_owned()).or_default() += 1;
        }
        let live = orchestrator.agents(COUNTED_MAX).await?.into_iter().map(|live| live.task_id);
        let agents: HashSet<TaskId> = live.chain(inboxes.into_keys()).collect();
        let (head, budget) = (orchestrator.head().await?, orchestrator.budget().await?);
        Ok(Self { head, agents: agents.len(), tasks, queues, budget })
    }

    fn set(&self, metrics: &Metrics) {
        metrics.journal_head(self.head);
        metrics.active_agents(self.agents);
        for status in [TaskStatus::Pending, TaskStatus::Running, TaskStatus::InputRequired] {
            metrics.tasks_unfinished(status, self.tasks.get(&status).copied().unwrap_or_default());
        }
        for scope in std::iter::once(&self.budget.total).chain(&self.budget.keys) {
            let whose = scope.key_id.as_ref().map_or("total".to_owned(), |id| format!("key:{id}"));
            for (window, name) in [(&scope.day, "day"), (&scope.month, "month")] {
                let (spent, limit) = (window.spent_nano_usd, window.limit_nano_usd);
                metrics.budget(&format!("{whose}:{name}"), spent, limit);
            }
        }
        metrics.queue_sizes(self.queues.iter().map(|(queue, size)| (queue.as_str(), *size)));
    }
}
