//! A wall clock that is set does not end or prolong what is under way.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{BootTime, Clock, Journal};
use antiphon_core::{EventBody, Position, TaskId, TaskLimits, TaskStatus};
use antiphon_runtime::{
    ApprovalPolicy, Arrival, NewTask, Orchestrator, OrchestratorSettings, RuntimeDeps, TaskState,
};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::live_agents::{LiveAgents, request};
use crate::task::STEPS;
use crate::world::{Careful, Counting, new_task, world};

const HOUR_S: i64 = 3600;

const STALLS: &str = "name = \"test\"\n[[reply]]\nstep = [{ text = \"Wait\" }, { stall = true }]\n";
const SLOW: &str =
    "name = \"test\"\n[[reply]]\nstep = [{ delay_ms = 20000 }, { text = \"Done.\" }]\n";
const AWAY: &str = "name = \"test\"\n[[reply]]\nstep = [{ error = { kind = \"connection\" } }]\n";

/// A wall clock that can be set, and a monotonic one that cannot.
struct SetClock {
    began: Instant,
    ahead_s: AtomicI64,
    boots: AtomicU64,
}

impl SetClock {
    fn new() -> Arc<Self> {
        let (began, ahead_s, boots) = (Instant::now(), AtomicI64::new(0), AtomicU64::new(1));
        Arc::new(Self { began, ahead_s, boots })
    }

    fn set(&self, by_s: i64) {
        self.ahead_s.fetch_add(by_s, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(self.began.elapsed()).expect("not that long");
        let ahead = TimeDelta::seconds(self.ahead_s.load(Ordering::SeqCst));
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + passed + ahead
    }

    fn monotonic(&self) -> Duration {
        self.began.elapsed()
    }

    fn boot_time(&self) -> Option<BootTime> {
        let boot_id = Uuid::from_u128(self.boots.load(Ordering::SeqCst).into());
        let elapsed_ms = u64::try_from(self.began.elapsed().as_millis()).expect("not that long");
        // Zero stands for a machine that does not tell.
        (!boot_id.is_nil()).then_some(BootTime { boot_id, elapsed_ms: elapsed_ms + 1_000_000 })
    }
}

fn process(clock: &Arc<SetClock>, journal: &Arc<MemoryJournal>, script: &str) -> Orchestrator {
    let journal = Arc::clone(journal) as Arc<dyn Journal>;
    let deps = world(journal, &Arc::new(Counting::default()), script);
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Orchestrator::new(RuntimeDeps { clock, ..deps })
}

async fn thirty_seconds(orchestrator: &Orchestrator) -> TaskId {
    let limits = TaskLimits { wall_clock_s_max: NonZeroU32::new(30), ..TaskLimits::default() };
    let task = NewTask { limits, ..new_task("go") };
    orchestrator.invoke(task).await.expect("accepted").task_id
}

async fn ended(orchestrator: &Orchestrator, task_id: &TaskId) -> TaskState {
    let day = Duration::from_secs(24 * 3600);
    let ended = tokio::time::timeout(day, orchestrator.wait(task_id)).await;
    ended.expect("it ends within a day").expect("an end")
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_fails_no_task() {
    for by_s in [HOUR_S, -HOUR_S, 24 * HOUR_S] {
        let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
        let orchestrator = process(&clock, &journal, SLOW);
        let task_id = thirty_seconds(&orchestrator).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.set(by_s);
        let state = ended(&orchestrator, &task_id).await;
        assert_eq!(state.status, TaskStatus::Completed, "{by_s}: {:?}", state.detail);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_ends_a_task_after_its_time_whatever_the_clock_says() {
    for script in [STALLS, AWAY] {
        for by_s in [0, HOUR_S, -HOUR_S] {
            let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
            let orchestrator = process(&clock, &journal, script);
            let (began, task_id) = (Instant::now(), thirty_seconds(&orchestrator).await);
            tokio::time::sleep(Duration::from_secs(5)).await;
            clock.set(by_s);
            let state = ended(&orchestrator, &task_id).await;
            assert_eq!(state.status, TaskStatus::Failed);
            let took = began.elapsed();
            let seconds = Duration::from_secs(30)..Duration::from_secs(31);
            assert!(seconds.contains(&took), "set by {by_s} s: it took {took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_between_two_processes_prolongs_no_task_beyond_its_limit() {
    let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
    let first = process(&clock, &journal, STALLS);
    let task_id = thirty_seconds(&first).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    first.shutdown(Duration::ZERO).await;
    clock.set(-HOUR_S);
    let second = process(&clock, &journal, STALLS);
    let began = Instant::now();
    second.recover().await.expect("recovered");
    assert_eq!(ended(&second, &task_id).await.status, TaskStatus::Failed);
    assert!(began.elapsed() < Duration::from_secs(31), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_model_is_not_put_off_by_a_clock_that_is_set_back() {
    let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
    let orchestrator = process(&clock, &journal, AWAY);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    tokio::time::sleep(Duration::from_secs(3)).await;
    clock.set(-HOUR_S);
    let before = orchestrator.task(&task_id).await.expect("a task").outage.attempts;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let after = orchestrator.task(&task_id).await.expect("a task").outage.attempts;
    assert!(after >= before + 4, "{before} and {after} attempts");
}

/// A task of thirty seconds that a first process works on for five, and a second one a little later. `between`
/// sets the clock meanwhile.
async fn in_two_processes(script: &str, between: impl Fn(&SetClock)) -> (TaskState, Duration) {
    let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
    let first = process(&clock, &journal, script);
    let (began, task_id) = (Instant::now(), thirty_seconds(&first).await);
    tokio::time::sleep(Duration::from_secs(5)).await;
    first.shutdown(Duration::ZERO).await;
    between(&clock);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = process(&clock, &journal, script);
    second.recover().await.expect("recovered");
    let state = ended(&second, &task_id).await;
    (state, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_between_two_processes_fails_no_task() {
    for by_s in [0, HOUR_S, -HOUR_S, 24 * HOUR_S, 20] {
        let (state, took) = in_two_processes(SLOW, |clock| clock.set(by_s)).await;
        assert_eq!(state.status, TaskStatus::Completed, "{by_s}: {:?}", state.detail);
        assert!(took < Duration::from_secs(28), "{by_s}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_holds_across_processes_whatever_the_clock_says() {
    for by_s in [0, HOUR_S, -HOUR_S] {
        let (state, took) = in_two_processes(STALLS, |clock| clock.set(by_s)).await;
        assert_eq!(state.status, TaskStatus::Failed);
        let seconds = Duration::from_secs(30)..Duration::from_secs(31);
        assert!(seconds.contains(&took), "set by {by_s} s: it took {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_of_the_machine_the_wall_clock_counts_and_never_prolongs_a_limit() {
    // Another start of the machine, and a machine that does not tell.
    for boots in [2, 0] {
        for (by_s, seconds) in [(HOUR_S, 5..7), (0, 30..31), (-HOUR_S, 30..37)] {
            let between = |clock: &SetClock| {
                clock.set(by_s);
                clock.boots.store(boots, Ordering::SeqCst);
            };
            let (state, took) = in_two_processes(STALLS, between).await;
            assert_eq!(state.status, TaskStatus::Failed);
            assert!(seconds.contains(&took.as_secs()), "boots {boots}, set by {by_s} s: {took:?}");
        }
    }
}

/// The two ways to live through a clock that is set: in one process, and in the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Processes {
    One,
    Two,
}

const WAYS: [(Processes, i64); 6] = [
    (Processes::One, 0),
    (Processes::One, HOUR_S),
    (Processes::One, -HOUR_S),
    (Processes::Two, 0),
    (Processes::Two, HOUR_S),
    (Processes::Two, -HOUR_S),
];

/// A process in which approvals wait for thirty seconds.
fn asking(clock: &Arc<SetClock>, journal: &Arc<MemoryJournal>) -> Orchestrator {
    let deps = world(Arc::clone(journal) as Arc<dyn Journal>, &Arc::default(), STEPS);
    let approvals = ApprovalPolicy::Wait { timeout: Some(Duration::from_secs(30)) };
    let settings = OrchestratorSettings { approvals, ..deps.settings };
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    Orchestrator::new(RuntimeDeps { clock, settings, gate: Arc::<Careful>::default(), ..deps })
}

#[tokio::test(start_paused = true)]
async fn an_approval_expires_after_its_time_whatever_the_clock_says() {
    for (processes, by_s) in WAYS {
        let (clock, journal) = (SetClock::new(), Arc::new(MemoryJournal::new()));
        let mut orchestrator = asking(&clock, &journal);
        let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
        orchestrator.wait(&task_id).await.expect("at rest");
        let began = Instant::now();
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.set(by_s);
        if processes == Processes::Two {
            orchestrator.shutdown(Duration::ZERO).await;
            orchestrator = asking(&clock, &journal);
            orchestrator.recover().await.expect("recovered");
        }
        let mut events = orchestrator.follow(Some(task_id), Position(0));
        while !matches!(
            tokio::time::timeout(Duration::from_secs(24 * 3600), events.next()).await,
            Ok(Ok(event)) if matches!(event.body, EventBody::ApprovalDecided(_))
        ) {}
        let took = began.elapsed();
        let seconds = Duration::from_secs(29)..Duration::from_secs(32);
        assert!(seconds.contains(&took), "{processes:?}, set by {by_s} s: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_overdue_after_its_time_whatever_the_clock_says() {
    for (processes, by_s) in WAYS {
        let clock = SetClock::new();
        let mut live_agents = LiveAgents::of(&["bob"], STALLS.to_owned());
        live_agents.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        live_agents.restart().await;
        let until = Some(clock.now() + TimeDelta::seconds(30));
        let began = Instant::now();
        let arrival = Arrival { until, ..request("bob", "count", json!(3)) };
        let (id, _) = live_agents.admit(arrival).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        clock.set(by_s);
        if processes == Processes::Two {
            live_agents.restart().await;
        }
        live_agents.reply(id).await;
        let took = began.elapsed();
        let seconds = Duration::from_secs(29)..Duration::from_secs(32);
        assert!(seconds.contains(&took), "{processes:?}, set by {by_s} s: {took:?}");
    }
}
