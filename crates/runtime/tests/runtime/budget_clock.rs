//! Midnight, at any moment: every task that may continue does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use antiphon_core::port::Clock;
use antiphon_runtime::{Budget, Orchestrator, RuntimeConfig, RuntimeDeps};
use chrono::{DateTime, TimeDelta, Utc};

use crate::budget::{ANSWER, Bench, goes_on, limits};
use crate::world::new_task;

/// Time until midnight.
const EVENING: Duration = Duration::from_millis(100);

/// How long a task may take that need not wait.
const PATIENCE: Duration = Duration::from_millis(800);

/// A clock on which the next day begins at the so many-th look.
struct Striking {
    eve: DateTime<Utc>,
    looks: AtomicUsize,
    strikes_at: usize,
    began: Instant,
}

impl Clock for Striking {
    fn now(&self) -> DateTime<Utc> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        let struck = look >= self.strikes_at || self.began.elapsed() > EVENING;
        if struck { self.eve + TimeDelta::seconds(2) } else { self.eve }
    }
}

#[tokio::test]
async fn tasks_that_wait_for_a_budget_continue_at_midnight() {
    for strikes_at in 1..90 {
        let bench = Bench::new();
        let eve = "2026-03-10T23:59:59.9Z".parse().expect("a time");
        let clock = Arc::new(Striking {
            eve,
            looks: AtomicUsize::new(0),
            strikes_at,
            began: Instant::now(),
        });
        let world = RuntimeDeps { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..bench.world() };
        let budget = Budget { total: limits(ANSWER * 2, ANSWER * 40), ..Budget::default() };
        let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget });
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        if tokio::time::timeout(PATIENCE, goes_on(&orchestrator, &task_id)).await.is_ok() {
            continue;
        }
        // Both answers of the new day may be spent: then it waits for the one behind it.
        let detail = orchestrator.task(&task_id).await.expect("a task").detail.expect("a reason");
        let resets_at = detail["resets_at"].as_str().expect("a time");
        assert_eq!(resets_at, "2026-03-12T00:00:00Z", "struck at look {strikes_at}");
    }
}
