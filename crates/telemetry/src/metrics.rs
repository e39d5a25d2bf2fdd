//! Metrics from events, in the text format of `OpenMetrics`, which Prometheus reads.
//!
//! [`Metrics::observe`] is bookkeeping: it takes no longer than looking up a few names, and does not
//! fail. An event that has been seen is not counted again. What is not in the journal is set by
//! whoever knows it: requests, live agents, queues, breakers, budgets.
//!
//! Labels have at most [`LABEL_VALUES_MAX`](crate::LABEL_VALUES_MAX) values each, and those that go
//! together at most [`SERIES_MAX`](crate::SERIES_MAX); whatever comes behind them is counted as
//! `other`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use antiphon_core::{Cost, Event, Position, PriceTable, TaskStatus};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

use crate::exporter::ExportCounts;
use crate::families::{ByBudget, ByProvider, ByQueue, ByRoute, ByRouteStatus, ByStatus, Families};
use crate::ledger::Ledger;
use crate::names::{Names, OTHER, Series};

/// The media type of what [`Metrics::render`] writes.
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counts what happens. Cheap to clone; clones count together.
#[derive(Debug, Clone)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    families: Families,
    ledger: Mutex<Ledger>,
    given: Mutex<Given>,
}

/// Names that callers gave.
#[derive(Debug, Default)]
struct Given {
    routes: Names,
    queues: Names,
    providers: Names,
    budgets: Names,
    requests: Series<ByRouteStatus>,
}

/// What happens to the next request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    /// It goes through.
    Closed,
    /// It is a probe.
    HalfOpen,
    /// It fails at once.
    Open,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Nothing has been counted, and nobody knows what models cost.
    pub fn new() -> Self {
        Self::with_prices(PriceTable::default())
    }

    /// Nothing has been counted.
    pub fn with_prices(prices: PriceTable) -> Self {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry);
        let ledger = Mutex::new(Ledger::new(prices));
        Self { inner: Arc::new(Inner { registry, families, ledger, given: Mutex::default() }) }
    }

    /// Counts what happened next. An event that has been seen changes nothing.
    pub fn observe(&self, event: &Event) {
        self.ledger().observe(event, &self.inner.families);
    }

    /// The last event that was counted.
    pub fn position(&self) -> Position {
        self.ledger().position()
    }

    /// Counts a request that was answered. `route` is the template (`/v1/tasks/{id}`), never the
    /// path.
    pub fn http(&self, method: &str, route: &str, status: u16, took: Duration) {
        let families = &self.inner.families;
        let mut given = self.given();
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

    /// How many agents are live.
    pub fn active_agents(&self, agents: usize) {
        self.inner.families.active_agents.set(whole(agents as u64));
    }

    /// How much waits in a queue.
    pub fn queue_size(&self, queue: &str, waiting: usize) {
        let queue = self.given().queues.get(queue);
        let size = self.inner.families.queue_size.get_or_create(&ByQueue { queue });
        size.set(whole(waiting as u64));
    }

    /// How much waits in every queue there is: those that are not named are no more. Queues that there
    /// is no room for are one, `other`.
    pub fn queue_sizes<'a>(&self, sizes: impl IntoIterator<Item = (&'a str, usize)>) {
        let mut given = self.given();
        given.queues = Names::default();
        let family = &self.inner.families.queue_size;
        family.clear();
        for (queue, waiting) in sizes {
            let queue = given.queues.get(queue);
            family.get_or_create(&ByQueue { queue }).inc_by(whole(waiting as u64));
        }
    }

    /// How many tasks have a status that does not last.
    pub fn tasks_unfinished(&self, status: TaskStatus, tasks: usize) {
        let labels = ByStatus { status: status.as_str() };
        self.inner.families.tasks_unfinished.get_or_create(&labels).set(whole(tasks as u64));
    }

    /// How a provider's breaker stands.
    pub fn breaker(&self, provider: &str, breaker: Breaker) {
        let provider = self.given().providers.get(provider);
        let state = self.inner.families.breaker_state.get_or_create(&ByProvider { provider });
        state.set(match breaker {
            Breaker::Closed => 0,
            Breaker::HalfOpen => 1,
            Breaker::Open => 2,
        });
    }

    /// What was spent of a budget, and how much it is, unless it has no limit.
    pub fn budget(&self, budget: &str, spent: Cost, limit: Option<Cost>) {
        let labels = ByBudget { budget: self.given().budgets.get(budget) };
        let families = &self.inner.families;
        families.budget_spent.get_or_create(&labels).set(usd(spent));
        match limit {
            Some(limit) => drop(families.budget_limit.get_or_create(&labels).set(usd(limit))),
            None => drop(families.budget_limit.remove(&labels)),
        }
    }

    /// The last position of the journal.
    pub fn journal_head(&self, head: Position) {
        self.inner.families.journal_head.set(whole(head.0));
    }

    /// What became of the spans so far.
    pub fn exported(&self, counts: ExportCounts) {
        let families = &self.inner.families;
        // A counter never goes back, whoever comes late with an older count.
        let raise = |counter: &Counter, to| counter.inner().fetch_max(to, Ordering::Relaxed);
        raise(&families.spans_exported, counts.exported);
        raise(&families.spans_dropped, counts.dropped);
        raise(&families.spans_failed, counts.failed);
    }

    /// Everything, as [`METRICS_CONTENT_TYPE`].
    pub fn render(&self) -> String {
        self.ledger().summarize(&self.inner.families);
        let mut text = String::new();
        if text::encode(&mut text, &self.inner.registry).is_err() {
            // A string takes everything that is written to it.
            tracing::error!("the metrics could not be written");
        }
        text
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.inner.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn given(&self) -> MutexGuard<'_, Given> {
        self.inner.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Callers may send any word as a method.
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
