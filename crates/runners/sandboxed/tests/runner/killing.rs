//! Workers that are killed anywhere: the task goes on, and nothing is done twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use antiphon_conformance::reference::{DelegatingJournal, JournalHooks};
use antiphon_core::port::{
    Append, Appended, Journal, JournalError, Runner, RunnerError, RunnerTask,
};
use antiphon_core::{TaskId, TaskStatus};
use async_trait::async_trait;

use crate::bench::{Bench, SOON, calls, ends, events, eventually, kill_worker};
use crate::completing::LAPS;
use crate::model::PiecewiseModel;

/// When a worker is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before what it says is written.
    Before,
    /// After it was written, before the worker receives it.
    After,
}

/// A journal that kills the worker of a task at its `n`th append.
struct Deadly {
    journal: Arc<dyn Journal>,
    token: String,
    nth: usize,
    moment: Moment,
    appends: AtomicUsize,
}

#[async_trait]
impl JournalHooks for Deadly {
    fn inner(&self) -> &dyn Journal {
        &*self.journal
    }

    async fn append(&self, append: Append) -> Result<Appended, JournalError> {
        let number = self.appends.fetch_add(1, Ordering::SeqCst);
        if number == self.nth && self.moment == Moment::Before {
            assert!(kill_worker(&self.token), "there is a worker to kill");
        }
        let appended = self.inner().append(append).await;
        if number == self.nth && self.moment == Moment::After {
            assert!(kill_worker(&self.token), "there is a worker to kill");
        }
        appended
    }
}

/// Asks again until the task has ended, as an orchestrator does.
async fn goes_on(bench: &Bench, task_id: &TaskId) {
    for _ in 0..5 {
        match bench.once(task_id).await {
            Ok(()) => return,
            Err(RunnerError::Unavailable { .. }) => {}
            Err(other) => unreachable!("{other}"),
        }
    }
    unreachable!("it does not end");
}

#[tokio::test]
async fn a_worker_can_be_killed_at_every_write() {
    let mut killed = 0;
    for nth in 0..20 {
        for moment in [Moment::Before, Moment::After] {
            let bench = Bench::new(LAPS);
            let task_id = bench.accept().await;
            let journal = DelegatingJournal(Deadly {
                journal: Arc::clone(&bench.journal) as Arc<dyn Journal>,
                token: bench.token.clone(),
                nth,
                moment,
                appends: AtomicUsize::new(0),
            });
            let run = RunnerTask { journal: Arc::new(journal), ..bench.run(&task_id) };
            let place = format!("{moment:?} write {nth}");
            match tokio::time::timeout(SOON, bench.runner.run(run)).await.unwrap() {
                Ok(()) => {}
                Err(RunnerError::Unavailable { .. }) => killed += 1,
                Err(other) => unreachable!("{place}: {other}"),
            }
            goes_on(&bench, &task_id).await;
            let state = bench.state(&task_id).await;
            assert_eq!(state.status, TaskStatus::Completed, "{place}");
            assert_eq!(ends(&events(&*bench.journal).await), [TaskStatus::Completed], "{place}");
            let acts = bench.lines("acts");
            let once: BTreeSet<_> = acts.iter().collect();
            assert_eq!(once.len(), acts.len(), "{place}: {acts:?}");
            let results = bench.results(&task_id).await;
            assert_eq!(results.len(), 6, "{place}: {results:?}");
            let cut_off = results.iter().filter(|(text, _)| text.contains("outcome unknown"));
            assert!(cut_off.clone().count() <= 1, "{place}: {results:?}");
            if cut_off.count() == 0 {
                assert_eq!(acts, ["1", "2", "3"], "{place}");
            }
            bench.assert_clean();
        }
    }
    assert!(killed >= 12, "{killed} workers were killed before their task had ended");
}

#[tokio::test]
async fn a_worker_can_be_killed_while_the_model_answers() {
    for _ in 0..10 {
        let (model, say) = PiecewiseModel::new();
        let requested = Arc::clone(&model.requested);
        let bench = Bench::with(Arc::new(model), |_| {});
        let task_id = bench.accept().await;
        let kill = async {
            say.send("half".to_owned()).await.unwrap();
            eventually("half is heard", || bench.lines("heard").concat() == "half").await;
            assert!(kill_worker(&bench.token));
        };
        let (ran, ()) = tokio::join!(bench.once(&task_id), kill);
        let reason = "the worker was killed".to_owned();
        assert_eq!(ran, Err(RunnerError::Unavailable { reason }));
        bench.assert_clean();
        goes_on(&bench, &task_id).await;
        assert_eq!(bench.state(&task_id).await.status, TaskStatus::Completed);
        assert_eq!(*requested.lock().unwrap(), 2);
        drop(say);
    }
}

#[tokio::test]
async fn a_worker_can_be_killed_while_a_tool_runs() {
    for _ in 0..10 {
        let bench = Bench::new(&calls("hang", serde_json::json!({ "on": "x" })));
        let task_id = bench.accept().await;
        let kill = async {
            eventually("the tool runs", || bench.lines("hangs").len() == 1).await;
            assert!(kill_worker(&bench.token));
        };
        let (ran, ()) = tokio::join!(bench.once(&task_id), kill);
        assert!(matches!(ran, Err(RunnerError::Unavailable { .. })), "{ran:?}");
        bench.assert_clean();
        goes_on(&bench, &task_id).await;
        let results = bench.results(&task_id).await;
        assert!(results.len() == 1 && results[0].0.contains("outcome unknown"), "{results:?}");
        assert_eq!(bench.lines("hangs").len(), 1);
    }
}
