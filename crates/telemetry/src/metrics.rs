//! Metrics from events, in the `OpenMetrics` text format that Prometheus reads.
//!
//! [`Metrics::observe`] takes a few lookups and does not fail. A repeated event is not counted
//! again. The caller sets what is not in the journal: requests, live agents, queues, breakers,
//! budgets.
//!
//! Each label has at most [`LABEL_VALUES_MAX`](crate::LABEL_VALUES_MAX) values, and each metric at
//! most [`SERIES_MAX`](crate::SERIES_MAX) combinations; further ones are counted as `other`.

mod event_counter;
mod families;
pub(crate) mod labels;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{Cost, Event, Position, PriceTable, TaskStatus, TaskSummary};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::export::exporter::ExportCounts;
use crate::metrics::event_counter::EventCounter;
use crate::metrics::families::{
    ByBudget, ByProvider, ByQueue, ByReason, ByRoute, ByRouteStatus, ByStatus, Families,
};
use crate::metrics::labels::{Names, OTHER, Series};

/// The media type of [`Metrics::render`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts events. Cheap to clone; clones share their counts.
#[derive(Debug, Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    families: Families,
    counter: Mutex<EventCounter>,
    caller_labels: Mutex<CallerLabels>,
}

/// Label values that callers set.
#[derive(Debug, Default)]
struct CallerLabels {
    routes: Names,
    queues: Names,
    providers: Names,
    budgets: Names,
    reasons: Names,
    requests: Series<ByRouteStatus>,
}

/// State of a provider's circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Requests are sent.
    Closed,
    /// One request is sent as a probe.
    HalfOpen,
    /// Requests fail at once.
    Open,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Empty metrics without prices: no costs are counted.
    pub fn new() -> Self {
        Self::with_prices(PriceTable::default())
    }

    /// Empty metrics with the prices of models.
    pub fn with_prices(prices: PriceTable) -> Self {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        let counter = Mutex::new(EventCounter::new(prices));
        Self {
            inner: Arc::new(Inner { registry, families, counter, caller_labels: Mutex::default() }),
        }
    }

    /// Counts the next event. A repeated event changes nothing.
    pub fn observe(&self, event: &Event) {
        self.counter().observe(event, &self.inner.families);
    }

    /// Knows an unfinished task whose first events were counted by an earlier process: what follows is counted for its
    /// agent.
    pub fn resume(&self, task: &TaskSummary) {
        self.counter().resume(task);
    }

    /// Position of the last counted event.
    pub fn position(&self) -> Position {
        self.counter().position()
    }

    /// Counts an answered HTTP request. `route` is the template (`/v1/tasks/{id}`), never the path.
    pub fn http(&self, method: &str, route: &str, status: u16, took: Duration) {
        let families = &self.inner.families;
        let mut given = self.caller_labels();
        let (method, route) = (known_method(method), given.routes.get(route));
        let status = if (100..600).contains(&status) { status } else { 0 };
        let labels = ByRouteStatus { method, route, status };
        let labels = given.requests.get(labels, |labels| ByRouteStatus {
            method: OTHER,
            route: OTHER.into(),
            ..labels
        });
        drop(given);
        families.http_requests.get_or_create(&labels).inc();
        let ByRouteStatus { method, route, .. } = labels;
        let duration = families.http_duration.get_or_create(&ByRoute { method, route });
        duration.observe(took.as_secs_f64());
    }

    /// Sets the number of live agents.
    pub fn active_agents(&self, agents: usize) {
        self.inner.families.active_agents.set(whole(agents as u64));
    }

    /// Sets the length of a queue.
    pub fn queue_size(&self, queue: &str, waiting: usize) {
        let queue = self.caller_labels().queues.get(queue);
        let size = self.inner.families.queue_size.get_or_create(&ByQueue { queue });
        size.set(whole(waiting as u64));
    }

    /// Sets the lengths of all queues: others are removed. Queues above the limit are summed up as
    /// `other`.
    pub fn queue_sizes<'a>(&self, sizes: impl IntoIterator<Item = (&'a str, usize)>) {
        let mut given = self.caller_labels();
        given.queues = Names::default();
        let family = &self.inner.families.queue_size;
        family.clear();
        for (queue, waiting) in sizes {
            let queue = given.queues.get(queue);
            family.get_or_create(&ByQueue { queue }).inc_by(whole(waiting as u64));
        }
    }

    /// Sets the number of tasks with a status that is not terminal.
    pub fn tasks_unfinished(&self, status: TaskStatus, tasks: usize) {
        let labels = ByStatus { status: status.as_str() };
        self.inner.families.tasks_unfinished.get_or_create(&labels).set(whole(tasks as u64));
    }

    /// Sets the number of tasks that wait for `reason`.
    pub fn tasks_waiting(&self, reason: &str, tasks: usize) {
        let reason = self.caller_labels().reasons.get(reason);
        let gauge = self.inner.families.tasks_waiting.get_or_create(&ByReason { reason });
        gauge.set(whole(tasks as u64));
    }

    /// Sets the number of tasks that are stuck.
    pub fn tasks_stuck(&self, tasks: usize) {
        self.inner.families.tasks_stuck.set(whole(tasks as u64));
    }

    /// Sets whether the journal takes events, and how many appends failed since the start.
    pub fn journal(&self, takes_events: bool, errors: u64) {
        let families = &self.inner.families;
        families.journal_up.set(i64::from(takes_events));
        // A counter never decreases, also if an older count arrives late.
        families.journal_errors.inner().fetch_max(errors, Ordering::Relaxed);
    }

    /// Sets the state of a provider's breaker.
    pub fn breaker(&self, provider: &str, breaker: BreakerState) {
        let provider = self.caller_labels().providers.get(provider);
        let state = self.inner.families.breaker_state.get_or_create(&ByProvider { provider });
        state.set(match breaker {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        });
    }

    /// Sets the spent amount and the limit of a budget. Without a limit, that metric is removed.
    pub fn budget(&self, budget: &str, spent: Cost, limit: Option<Cost>) {
        let labels = ByBudget { budget: self.caller_labels().budgets.get(budget) };
        let families = &self.inner.families;
        families.budget_spent.get_or_create(&labels).set(usd(spent));
        match limit {
            Some(limit) => drop(families.budget_limit.get_or_create(&labels).set(usd(limit))),
            None => drop(families.budget_limit.remove(&labels)),
        }
    }

    /// Sets the last position of the journal.
    pub fn journal_head(&self, head: Position) {
        self.inner.families.journal_head.set(whole(head.0));
    }

    /// Sets the number of spans by result.
    pub fn exported(&self, counts: ExportCounts) {
        let families = &self.inner.families;
        // A counter never decreases, also if an older count arrives late.
        let raise = |counter: &Counter, to| counter.inner().fetch_max(to, Ordering::Relaxed);
        raise(&families.spans_exported, counts.exported);
        raise(&families.spans_dropped, counts.dropped);
        raise(&families.spans_failed, counts.failed);
    }

    /// All metrics, as [`METRICS_CONTENT_TYPE`].
    pub fn render(&self) -> String {
        self.counter().summarize(&self.inner.families);
        let mut text = String::new();
        if text::encode(&mut text, &self.inner.registry).is_err() {
            // Writing to a String does not fail.
            tracing::error!("the metrics could not be written");
        }
        text
    }

    fn counter(&self) -> MutexGuard<'_, EventCounter> {
        self.inner.counter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caller_labels(&self) -> MutexGuard<'_, CallerLabels> {
        self.inner.caller_labels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Clients may send any word as a method.
fn known_method(method: &str) -> &'static str {
    const KNOWN: [&str; 9] =
        ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method).unwrap_or(OTHER)
}

pub(crate) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
pub(crate) fn usd(cost: Cost) -> f64 {
    cost.nano_usd as f64 / 1e9
}
