//! What may be spent in all and by whom: who may not spend more waits, and loses nothing.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{Clock, IdempotencyKey, Journal, SystemClock};
use antiphon_core::{
    Cost, EventBody, ModelRef, Position, Price, PriceTable, SpendLimits, TaskId, TaskStatus,
    WaitingFor,
};
use antiphon_runtime::{
    AcceptedTask, Budget, BudgetScope, LimitRaise, LimitReached, NewTask, Orchestrator,
    OrchestratorError, RuntimeConfig, RuntimeDeps, SpendCeiling, SpendLimitSource, TaskState,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::world::{Counting, Death, Mortal, events, new_task, world};

/// Three answers, of half a cent each.
const THREE: &str = r#"
name = "test"
[[reply]]
when = { turn = 0 }
step = [{ call = { name = "look", arguments = { at = "a" } } }]
usage = { input_tokens = 1000, output_tokens = 1000 }
[[reply]]
when = { turn = 1 }
step = [{ call = { name = "act", arguments = { on = "a" } } }]
usage = { input_tokens = 1000, output_tokens = 1000 }
[[reply]]
step = [{ text = "Done." }]
usage = { input_tokens = 1000, output_tokens = 1000 }
"#;

/// What one of them costs.
pub(crate) const ANSWER: u64 = 5_000_000;

pub(crate) fn prices() -> Arc<PriceTable> {
    let price: Price = serde_json::from_str(r#"{"input":1.0,"output":4.0}"#).expect("a price");
    let models = ["scripted/test", "scripted/team"];
    let priced = models.map(|name| (ModelRef::parse(name).expect("a model"), price));
    Arc::new(priced.into_iter().collect())
}

pub(crate) fn limits(daily: u64, monthly: u64) -> SpendLimits {
    SpendLimits {
        daily_nano_usd_max: NonZeroU64::new(daily),
        monthly_nano_usd_max: NonZeroU64::new(monthly),
    }
}

pub(crate) fn budget(daily: u64) -> Budget {
    Budget { total: limits(daily, 0), ..Budget::default() }
}

/// Keys with limits.
pub(crate) struct Keys(pub(crate) BTreeMap<&'static str, SpendLimits>);

impl SpendLimitSource for Keys {
    fn limits(&self, payer: &str) -> SpendLimits {
        self.0.get(payer).copied().unwrap_or_default()
    }

    fn limited(&self) -> Vec<(String, SpendLimits)> {
        self.0.iter().map(|(id, limits)| ((*id).to_owned(), *limits)).collect()
    }
}

pub(crate) struct Bench {
    journal: Arc<MemoryJournal>,
    tools: Arc<Counting>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { journal: Arc::new(MemoryJournal::new()), tools: Arc::new(Counting::default()) }
    }

    pub(crate) fn world(&self) -> RuntimeDeps {
        let journal: Arc<dyn Journal> = self.journal.clone();
        RuntimeDeps { prices: prices(), ..world(journal, &self.tools, THREE) }
    }

    fn orchestrator(&self, budget: Budget) -> Orchestrator {
        Orchestrator::new(RuntimeConfig { deps: self.world(), budget })
    }
}

pub(crate) fn allowing(by_nano_usd: u64) -> LimitRaise {
    LimitRaise { payer: None, by_nano_usd, by: "ada".to_owned(), comment: None, key: None }
}

fn waits(state: &TaskState) -> (TaskStatus, Option<WaitingFor>, u32) {
    (state.status, state.waiting_for, state.turns)
}

const fn waiting(turns: u32) -> (TaskStatus, Option<WaitingFor>, u32) {
    (TaskStatus::InputRequired, Some(WaitingFor::Budget), turns)
}

const DONE: (TaskStatus, Option<WaitingFor>, u32) = (TaskStatus::Completed, None, 3);

/// The next status of a task that is no `input_required`.
pub(crate) async fn goes_on(orchestrator: &Orchestrator, task_id: &TaskId) -> TaskState {
    let mut events = orchestrator.follow(Some(task_id.clone()), Position(0));
    loop {
        if events.next().await.expect("an event").body.ends_task() {
            return orchestrator.task(task_id).await.expect("a task");
        }
    }
}

#[tokio::test]
async fn a_task_waits_when_the_budget_is_spent_and_goes_on_when_more_is_allowed() {
    let bench = Bench::new();
    let orchestrator = bench.orchestrator(budget(ANSWER * 2));
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("a rest");
    assert_eq!(waits(&state), waiting(2));
    let detail = state.detail.expect("a reason");
    let reported = (&detail["scope"], &detail["period"], &detail["limit_nano_usd"]);
    assert_eq!(reported, (&"total".into(), &"day".into(), &(ANSWER * 2).into()));
    assert_eq!(detail["spent_nano_usd"], ANSWER * 2);

    // A resume does not continue it.
    let Err(OrchestratorError::Budget(spent)) = orchestrator.resume(&task_id).await else {
        panic!("it was resumed");
    };
    assert_eq!((spent.scope, spent.spent), (BudgetScope::Total, Cost { nano_usd: ANSWER * 2 }));
    let refused = orchestrator.check_budget(None, None).await;
    assert!(matches!(refused, Err(OrchestratorError::Budget(_))), "{refused:?}");
    let status = orchestrator.budget().await.expect("a budget");
    assert_eq!(status.waiting, std::slice::from_ref(&task_id));

    let status = orchestrator.allow(allowing(1)).await.expect("allowed");
    assert_eq!(status.total.day.limit_nano_usd, Some(Cost { nano_usd: ANSWER * 2 + 1 }));
    assert_eq!(waits(&goes_on(&orchestrator, &task_id).await), DONE);
    assert_eq!(orchestrator.budget().await.expect("a budget").waiting, []);
    assert!(bench.tools.done().values().all(|times| *times == 1));
}

#[tokio::test]
async fn what_is_allowed_under_one_name_is_allowed_once_and_makes_no_budget() {
    let bench = Bench::new();
    let orchestrator = bench.orchestrator(budget(ANSWER));
    let key = Some(IdempotencyKey("once".to_owned()));
    for _ in 0..3 {
        let raise = LimitRaise { key: key.clone(), ..allowing(7) };
        let status = orchestrator.allow(raise).await.expect("allowed");
        assert_eq!(status.total.day.raised_nano_usd, Cost { nano_usd: 7 });
    }
    for bad in [0, u64::MAX] {
        let refused = orchestrator.allow(allowing(bad)).await;
        assert!(matches!(refused, Err(OrchestratorError::RaiseRefused { .. })), "{refused:?}");
    }
    let unknown = LimitRaise { payer: Some("nobody".to_owned()), ..allowing(7) };
    let refused = orchestrator.allow(unknown).await;
    assert!(matches!(refused, Err(OrchestratorError::RaiseRefused { .. })), "{refused:?}");
    let raised = events(&*bench.journal)
        .await
        .iter()
        .filter(|e| matches!(e.body, EventBody::BudgetRaised(_)))
        .count();
    assert_eq!(raised, 1);
}

/// A clock that is so far ahead.
struct Ahead(TimeDelta);

impl Clock for Ahead {
    fn now(&self) -> DateTime<Utc> {
        SystemClock.now() + self.0
    }
}

#[tokio::test]
async fn a_task_goes_on_by_itself_when_the_next_day_begins() {
    let bench = Bench::new();
    // Half a second before midnight, and not at the end of a month.
    let eve: DateTime<Utc> = "2026-03-10T23:59:59.5Z".parse().expect("a time");
    let clock = Arc::new(Ahead(eve - SystemClock.now()));
    let world = RuntimeDeps { clock, ..bench.world() };
    let budget = Budget { total: limits(ANSWER * 2, ANSWER * 4), ..Budget::default() };
    let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget });
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("a rest");
    assert_eq!(waits(&state), waiting(2));
    assert_eq!(state.detail.expect("a reason")["resets_at"], "2026-03-11T00:00:00Z");
    assert_eq!(waits(&goes_on(&orchestrator, &task_id).await), DONE);
    let status = orchestrator.budget().await.expect("a budget");
    let spent = (status.total.day.spent_nano_usd, status.total.month.spent_nano_usd);
    assert_eq!(spent, (Cost { nano_usd: ANSWER }, Cost { nano_usd: ANSWER * 3 }));
}

#[tokio::test]
async fn after_a_restart_the_sums_are_the_same_and_who_waits_goes_on_when_it_may() {
    let bench = Bench::new();
    let first = bench.orchestrator(budget(ANSWER * 2));
    let task_id = first.invoke(new_task("go")).await.expect("accepted").task_id;
    first.wait(&task_id).await.expect("a rest");
    let before = first.budget().await.expect("a budget");
    first.shutdown(Duration::from_secs(5)).await;

    let second = bench.orchestrator(budget(ANSWER * 2));
    assert_eq!(second.budget().await.expect("a budget"), before);
    second.recover().await.expect("a list");
    assert_eq!(waits(&second.wait(&task_id).await.expect("a rest")), waiting(2));
    // Nothing is written again for a task that keeps waiting.
    let count = events(&*bench.journal).await.len();
    second.shutdown(Duration::from_secs(5)).await;
    let third = bench.orchestrator(budget(ANSWER * 2));
    third.recover().await.expect("a list");
    third.wait(&task_id).await.expect("a rest");
    assert_eq!(events(&*bench.journal).await.len(), count);
    third.allow(allowing(ANSWER)).await.expect("allowed");
    third.shutdown(Duration::from_secs(5)).await;

    // What was allowed is allowed still, and a larger budget would have done as well.
    let fourth = bench.orchestrator(budget(ANSWER * 2));
    fourth.recover().await.expect("a list");
    assert_eq!(waits(&fourth.wait(&task_id).await.expect("an end")), DONE);
}

#[tokio::test]
async fn a_task_that_waits_for_the_budget_survives_death_at_every_write() {
    let mut waited = 0;
    for last in 0..14 {
        for death in [Death::Before, Death::After] {
            let bench = Bench::new();
            let mortal: Arc<dyn Journal> = Arc::new(Mortal::new(&bench.journal, last, death));
            let world = RuntimeDeps { prices: prices(), ..world(mortal, &bench.tools, THREE) };
            let first =
                Orchestrator::new(RuntimeConfig { deps: world, budget: budget(ANSWER * 2) });
            if let Ok(AcceptedTask { task_id, .. }) = first.invoke(new_task("go")).await
                && first.wait(&task_id).await.is_ok()
            {
                // It waits, or has died meanwhile.
                let _ = first.allow(allowing(ANSWER)).await;
                let _ = first.wait(&task_id).await;
            }
            first.shutdown(Duration::from_secs(5)).await;

            let second = bench.orchestrator(budget(ANSWER * 2));
            let recovered = second.recover().await.expect("a list");
            assert_eq!(recovered.waiting, [], "{death:?} write {last}");
            for task_id in recovered.begun {
                let state = second.wait(&task_id).await.expect("a rest");
                if state.waiting_for == Some(WaitingFor::Budget) {
                    waited += 1;
                    second.allow(allowing(ANSWER)).await.expect("allowed");
                }
                let state = goes_on(&second, &task_id).await;
                assert_eq!(state.status, TaskStatus::Completed, "{death:?} write {last}");
            }
            let done = bench.tools.done();
            let mut acts = done.iter().filter(|(what, _)| what.starts_with("act"));
            assert!(acts.all(|(_, times)| *times <= 1), "{death:?} write {last}: {done:?}");
            // The sums match the journal after every outcome of the writes.
            let status = second.budget().await.expect("a budget");
            let fresh = bench.orchestrator(budget(ANSWER * 2)).budget().await.expect("a budget");
            assert_eq!(status, fresh, "{death:?} write {last}");
        }
    }
    assert!(waited >= 8, "it waited {waited} times after a death");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_that_race_spend_no_more_than_the_answers_that_are_under_way() {
    let bench = Bench::new();
    let orchestrator = bench.orchestrator(budget(ANSWER * 7));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        tasks.push(orchestrator.invoke(new_task("go")).await.expect("accepted").task_id);
    }
    for task_id in &tasks {
        orchestrator.wait(task_id).await.expect("a rest");
    }
    let status = orchestrator.budget().await.expect("a budget");
    let spent = status.total.day.spent_nano_usd.nano_usd;
    assert!((ANSWER * 7..ANSWER * (7 + 8)).contains(&spent), "{spent}");
    assert!(!status.waiting.is_empty());
    orchestrator.allow(allowing(ANSWER * 100)).await.expect("allowed");
    for task_id in &tasks {
        assert_eq!(waits(&goes_on(&orchestrator, task_id).await), DONE);
    }
    let status = orchestrator.budget().await.expect("a budget");
    assert_eq!(status.total.day.spent_nano_usd, Cost { nano_usd: ANSWER * 24 });
}

#[tokio::test]
async fn no_raise_goes_beyond_the_ceiling() {
    let bench = Bench::new();
    let ceiling = SpendCeiling { limits: limits(ANSWER * 3, 0), origin: "the policy".to_owned() };
    let budget = Budget { ceiling: Some(ceiling), ..budget(ANSWER * 2) };
    let orchestrator = bench.orchestrator(budget);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    assert_eq!(waits(&orchestrator.wait(&task_id).await.expect("a rest")), waiting(2));
    let refused = orchestrator.allow(allowing(ANSWER * 2)).await.expect_err("too much").to_string();
    assert!(refused.contains("at most (the policy)"), "{refused}");
    orchestrator.allow(allowing(ANSWER)).await.expect("allowed");
    assert_eq!(waits(&goes_on(&orchestrator, &task_id).await), DONE);
    let refused = orchestrator.allow(allowing(1)).await.expect_err("no more").to_string();
    assert!(refused.contains("as large as it may be (the policy)"), "{refused}");
    let next = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&next).await.expect("a rest");
    let error = state.detail.expect("a reason")["error"].to_string();
    assert!(error.contains("no user can raise it (the policy)"), "{error}");
}

#[tokio::test]
async fn the_budget_of_a_key_stops_no_other_key() {
    let bench = Bench::new();
    let keys = Keys([("poor", limits(ANSWER, 0)), ("rich", limits(0, ANSWER * 9))].into());
    let total = SpendLimits::default();
    let orchestrator =
        bench.orchestrator(Budget { total, spend_limits: Arc::new(keys), ceiling: None });
    let paying = |payer: &str| NewTask { payer: Some(payer.to_owned()), ..new_task("go") };
    let poor = orchestrator.invoke(paying("poor")).await.expect("accepted").task_id;
    assert_eq!(waits(&orchestrator.wait(&poor).await.expect("a rest")), waiting(1));
    let detail = orchestrator.task(&poor).await.expect("a task").detail.expect("a reason");
    assert_eq!((&detail["scope"], &detail["key_id"]), (&"key".into(), &"poor".into()));
    for task in [paying("rich"), new_task("go")] {
        let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
        assert_eq!(waits(&orchestrator.wait(&task_id).await.expect("an end")), DONE);
    }
    assert_eq!(orchestrator.check_budget(None, None).await, Ok(()));
    assert_eq!(orchestrator.check_budget(Some("rich"), None).await, Ok(()));
    let refused = orchestrator.check_own_budget(Some("poor")).await;
    assert!(matches!(refused, Err(OrchestratorError::Budget(_))), "{refused:?}");

    let status = orchestrator.budget().await.expect("a budget");
    let keys: Vec<_> = status
        .keys
        .iter()
        .map(|key| (key.key_id.as_deref(), key.month.spent_nano_usd.nano_usd / ANSWER))
        .collect();
    assert_eq!(keys, [(Some("poor"), 1), (Some("rich"), 3)]);
    // Another one's raise is of no use to it.
    let for_rich = LimitRaise { payer: Some("rich".to_owned()), ..allowing(ANSWER * 9) };
    orchestrator.allow(for_rich).await.expect("allowed");
    assert_eq!(waits(&orchestrator.wait(&poor).await.expect("a rest")), waiting(1));
    let for_poor = LimitRaise { payer: Some("poor".to_owned()), ..allowing(ANSWER * 9) };
    orchestrator.allow(for_poor).await.expect("allowed");
    assert_eq!(waits(&goes_on(&orchestrator, &poor).await), DONE);
}

#[tokio::test]
async fn under_a_budget_a_model_without_a_price_is_refused_and_a_scripted_one_is_not() {
    let bench = Bench::new();
    let orchestrator = bench.orchestrator(budget(ANSWER));
    let model = |name| ModelRef::parse(name).expect("a model");
    let unknown = |model: &str| {
        let model = model.to_owned();
        Err(OrchestratorError::Limit(LimitReached::PriceUnknown { model }))
    };
    let local = NewTask { model: model("local/llama"), ..new_task("go") };
    assert_eq!(orchestrator.invoke(local.clone()).await, unknown("local/llama"));
    let fallbacks = vec![model("local/llama")];
    let falling = NewTask { fallbacks, ..new_task("go") };
    assert_eq!(orchestrator.invoke(falling).await, unknown("local/llama"));
    // What it is called in its own answers counts.
    let script = THREE.replace("\"test\"", "\"free\"");
    let models = Arc::new(crate::world::Scripted { script, window_tokens: None });
    let world = RuntimeDeps { models, ..bench.world() };
    let orchestrator = Orchestrator::new(RuntimeConfig { deps: world, budget: budget(ANSWER) });
    let scripted = NewTask { model: model("scripted/free"), ..new_task("go") };
    let task_id = orchestrator.invoke(scripted).await.expect("accepted").task_id;
    assert_eq!(waits(&orchestrator.wait(&task_id).await.expect("an end")), DONE);
    let status = orchestrator.budget().await.expect("a budget");
    let counted = (status.total.day.spent_nano_usd, status.total.unpriced_calls);
    assert_eq!(counted, (Cost::default(), 3));
    // Without a budget it runs.
    let free = Orchestrator::new(bench.world());
    let task_id = free.invoke(local).await.expect("accepted").task_id;
    assert_eq!(waits(&free.wait(&task_id).await.expect("an end")), DONE);
}

#[tokio::test]
async fn a_task_that_waits_for_the_budget_can_be_paused_and_canceled() {
    let bench = Bench::new();
    let orchestrator = bench.orchestrator(budget(ANSWER));
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    assert_eq!(waits(&orchestrator.wait(&task_id).await.expect("a rest")), waiting(1));
    orchestrator.pause(&task_id).await.expect("paused");
    let state = orchestrator.wait(&task_id).await.expect("a rest");
    assert_eq!(state.waiting_for, Some(WaitingFor::Resume));
    // A pause stays a pause when more may be spent.
    orchestrator.allow(allowing(1)).await.expect("allowed");
    let state = orchestrator.wait(&task_id).await.expect("a rest");
    assert_eq!(state.waiting_for, Some(WaitingFor::Resume));
    orchestrator.resume(&task_id).await.expect("resumed");
    let state = orchestrator.wait(&task_id).await.expect("a rest");
    assert_eq!(waits(&state), waiting(2));
    orchestrator.cancel(&task_id).await.expect("canceled");
    let state = orchestrator.task(&task_id).await.expect("a task");
    assert_eq!((state.status, state.waiting_for), (TaskStatus::Canceled, None));
}
