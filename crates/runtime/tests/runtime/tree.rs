//! Trees of tasks: their limits, their end, and death at every write.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;
use std::time::{Duration, Instant};

use antiphon_conformance::reference::MemoryJournal;
use antiphon_core::port::{ApprovalSelector, Journal};
use antiphon_core::{Decision, EventBody, TaskId, TaskLimits, TaskStatus};
use antiphon_runtime::{AcceptedTask, NewTask, Orchestrator, RuntimeDeps, TaskState};
use serde_json::{Value, json};

use crate::team::{Roster, Team, agent, calls, otherwise, replying, results, says, script, step};
use crate::world::{Careful, Death, Mortal, new_task};

fn reported(state: &TaskState) -> Value {
    serde_json::from_str(&results(state)[0].0).expect("JSON")
}

async fn run(team: &Team, limits: TaskLimits) -> TaskState {
    let orchestrator = team.orchestrator();
    let task = NewTask { limits, ..new_task("go") };
    let task_id = orchestrator.invoke(task).await.expect("accepted").task_id;
    orchestrator.wait(&task_id).await.expect("an end")
}

fn number(n: u32) -> Option<NonZeroU32> {
    NonZeroU32::new(n)
}

/// An agent that calls itself, and says what came of it.
fn recursive() -> Team {
    let team = script(&[("Be brief", 0, &calls(r#"{"agent":"self","prompt":"deeper"}"#))]);
    let deeper = calls(r#"{"agent":"self","prompt":"deeper"}"#);
    let own = replying("system_contains = \"I am self\", turn = 0", &deeper)
        + &otherwise(&says("{{last_result}}"));
    Team::new(team + &own, Roster::default().with(agent("self")))
}

#[tokio::test]
async fn recursion_is_bounded() {
    for (limits, deep) in [
        (TaskLimits::default(), 6),
        (TaskLimits { depth_max: number(2), ..TaskLimits::default() }, 3),
    ] {
        let team = recursive();
        let state = run(&team, limits).await;
        assert_eq!(state.status, TaskStatus::Completed);
        assert_eq!(team.tasks().await.len(), deep);
        let word = state.detail.expect("a result").to_string();
        assert!(word.contains("limit_reached") && word.contains("depth"), "{word}");
    }
}

#[tokio::test]
async fn a_tree_has_no_more_tasks_than_it_may() {
    let three = r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"a","prompt":"2"},{"agent":"a","prompt":"3"}]}"#;
    for (limits, word) in [
        (TaskLimits { fan_out_max: number(2), ..TaskLimits::default() }, "fan_out"),
        (TaskLimits { tasks_max: number(3), ..TaskLimits::default() }, "tasks"),
    ] {
        let team = Team::new(
            script(&[("Be brief", 0, &calls(three)), ("Be brief", 1, &says("no"))]),
            Roster::default().with(agent("a")),
        );
        let state = run(&team, limits).await;
        let reported = reported(&state);
        assert_eq!(
            (&reported["error"], &reported["limit"]["limit"]),
            (&json!("limit_reached"), &json!(word))
        );
        assert_eq!(team.tasks().await.len(), 1);
    }
}

#[tokio::test]
async fn a_budget_is_shared_by_all_descendants() {
    let two = r#"{"targets":[{"agent":"a","prompt":"1"},{"agent":"a","prompt":"2"}]}"#;
    let spends = "{ text = \"much\" }";
    let mut text = script(&[("Be brief", 0, &calls(two)), ("Be brief", 1, &says("never"))]);
    text += &replying("system_contains = \"I am a\"", spends);
    text += "usage = { input_tokens = 600, output_tokens = 1 }\n";
    let team = Team::new(text, Roster::default().with(agent("a")));
    let limits = TaskLimits { tokens_max: NonZeroU64::new(1000), ..TaskLimits::default() };
    let state = run(&team, limits).await;
    assert_eq!(state.status, TaskStatus::Failed);
    assert_eq!(state.detail.expect("a reason")["limit"]["limit"], "tokens");
}

/// Limits of a task in the middle of the tree hold for its descendants.
#[tokio::test]
async fn the_limits_of_a_child_hold_for_what_it_dispatches() {
    let mut middle = agent("middle");
    middle.limits.turns_max = number(3);
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"middle","prompt":"go"}"#)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am middle", 0, &calls(r#"{"agent":"busy","prompt":"go"}"#)),
            ("I am middle", 1, &says("never")),
            ("I am busy", 0, &step("look", "{}")),
            ("I am busy", 1, &step("look", "{}")),
            ("I am busy", 2, &says("never")),
        ]),
        Roster::default().with(middle).with(agent("busy")),
    );
    let state = run(&team, TaskLimits::default()).await;
    assert_eq!(state.status, TaskStatus::Completed);
    let reported = reported(&state);
    assert_eq!(reported["result"]["status"], "failed");
    assert_eq!(reported["result"]["content"]["limit"], json!({"limit": "turns", "max": 3}));
}

#[tokio::test]
async fn a_childs_question_reaches_the_watcher_and_names_the_child() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"doer","prompt":"go"}"#)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am doer", 0, &step("act", "{}")),
            ("I am doer", 1, &says("did it")),
        ]),
        Roster::default().with(agent("doer")),
    );
    let world = RuntimeDeps { gate: Arc::new(Careful::default()), ..team.world() };
    let orchestrator = Orchestrator::new(world);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let state = orchestrator.wait(&task_id).await.expect("at rest");
    assert_eq!(state.status, TaskStatus::Running);
    let pending = orchestrator.approvals(ApprovalSelector::Pending).await.expect("approvals");
    let child = team.tasks().await[1].clone();
    assert_eq!((pending.len(), &pending[0].task_id), (1, &child.task_id));
    assert_eq!((child.agent.as_str(), &child.root), ("doer", &task_id));
    let (id, once) = (&pending[0].approval_id, Decision::AllowOnce);
    orchestrator.decide(id, once, "me", None).await.expect("decided");
    let state = orchestrator.wait(&task_id).await.expect("an end");
    assert_eq!(reported(&state)["result"]["content"], "did it");
    assert_eq!(team.tools.done()["act {}"], 1);
}

/// A team whose doer needs an approval, at rest in an orchestrator that has ended.
async fn left_at_a_question() -> (Team, TaskId) {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"lead","prompt":"go"}"#)),
            ("Be brief", 1, &says("{{last_result}}")),
            ("I am lead", 0, &calls(r#"{"agent":"doer","prompt":"go"}"#)),
            ("I am lead", 1, &says("led")),
            ("I am doer", 0, &step("act", "{}")),
            ("I am doer", 1, &says("did it")),
        ]),
        Roster::default().with(agent("lead")).with(agent("doer")),
    );
    let first =
        Orchestrator::new(RuntimeDeps { gate: Arc::new(Careful::default()), ..team.world() });
    let root = first.invoke(new_task("go")).await.expect("accepted").task_id;
    first.wait(&root).await.expect("at rest");
    assert!(first.shutdown(Duration::from_secs(5)).await);
    (team, root)
}

/// An orchestrator that runs other work: it has recovered nothing.
#[tokio::test]
async fn a_parent_learns_of_the_end_of_a_child_that_was_continued_alone() {
    for continued in ["by a decision", "by a resume"] {
        let (team, root) = left_at_a_question().await;
        let second =
            Orchestrator::new(RuntimeDeps { gate: Arc::new(Careful::default()), ..team.world() });
        let child = team.tasks().await[2].task_id.clone();
        if continued == "by a resume" {
            second.pause(&child).await.expect("paused");
            second.resume(&child).await.expect("resumed");
        }
        let pending = second.approvals(ApprovalSelector::Pending).await.expect("approvals");
        let (id, once) = (&pending[0].approval_id, Decision::AllowOnce);
        second.decide(id, once, "me", None).await.expect("decided");
        let mut events = second.follow(Some(root.clone()), antiphon_core::Position(0));
        let ended = async { while !events.next().await.expect("an event").body.ends_task() {} };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect(continued);
        let state = second.task(&root).await.expect("a task");
        assert_eq!(state.status, TaskStatus::Completed, "{continued}");
        assert_eq!(reported(&state)["result"]["content"], "led", "{continued}");
        assert_eq!(team.tools.done()["act {}"], 1);
    }
}

#[tokio::test]
async fn a_tree_rests_when_the_last_of_those_at_work_is_done() {
    let two = r#"{"targets":[{"agent":"doer","prompt":"1"},{"agent":"slow","prompt":"2"}]}"#;
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(two)),
            ("I am doer", 0, &step("act", "{}")),
            ("I am slow", 0, &format!("{{ delay_ms = 100 }}, {}", says("late"))),
        ]),
        Roster::default().with(agent("doer")).with(agent("slow")),
    );
    let world = RuntimeDeps { gate: Arc::new(Careful::default()), ..team.world() };
    let orchestrator = Orchestrator::new(world);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let rests = tokio::time::timeout(Duration::from_secs(20), orchestrator.wait(&task_id)).await;
    assert_eq!(rests.expect("it rests").expect("a task").status, TaskStatus::Running);
    let statuses: Vec<TaskStatus> = team.tasks().await.iter().map(|task| task.status).collect();
    let expected = [TaskStatus::Running, TaskStatus::InputRequired, TaskStatus::Completed];
    assert_eq!(statuses, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canceling_the_root_ends_everything_below() {
    // Ten leads of a hundred each: a third think, a third have a tool that hangs, a third wait.
    let kinds = ["thinks", "hangs", "waits"].into_iter().cycle();
    let target = |agent: &str| json!({"agent": agent, "prompt": "go"});
    let hundred: Vec<Value> = kinds.take(100).map(target).collect();
    let ten = vec![target("lead"); 10];
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(&json!({"targets": ten}).to_string())),
            ("I am lead", 0, &calls(&json!({"targets": hundred}).to_string())),
            ("I am thinks", 0, "{ stall = true }"),
            ("I am hangs", 0, &step("hang", "{}")),
            ("I am waits", 0, &step("act", "{}")),
        ]),
        ["lead", "thinks", "hangs", "waits"]
            .into_iter()
            .fold(Roster::default(), |roster, name| roster.with(agent(name))),
    );
    let world = RuntimeDeps { gate: Arc::new(Careful::default()), ..team.world() };
    let orchestrator = Orchestrator::new(world);
    let task_id = orchestrator.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = orchestrator.follow(None, antiphon_core::Position(0));
    let mut at_work = BTreeMap::new();
    while at_work.values().sum::<usize>() < 1000 {
        let event = follower.next().await.expect("an event");
        let happened = event.body.event_type();
        let thinks = |created: &antiphon_core::TaskCreated| created.agent == "thinks";
        let begins = matches!(&event.body, EventBody::TaskCreated(created) if thinks(created));
        if begins || ["tool_started", "approval_requested"].contains(&happened) {
            *at_work.entry(happened).or_insert(0) += 1;
        }
    }
    let began = Instant::now();
    orchestrator.cancel(&task_id).await.expect("canceled");
    println!("1,010 tasks canceled in {:?}", began.elapsed());
    let tasks = team.tasks().await;
    assert_eq!(tasks.len(), 1011);
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Canceled));
    assert!(orchestrator.shutdown(Duration::from_secs(5)).await);
}

/// Three levels, mixed joins.
fn company() -> (String, Roster) {
    let team = r#"{"targets":[{"agent":"lead","prompt":"1"},{"agent":"lead","prompt":"2"}]}"#;
    let any =
        r#"{"join":"any","targets":[{"agent":"doer","prompt":"a"},{"agent":"bad","prompt":"b"}]}"#;
    let detached = r#"{"agent":"doer","prompt":"c","join":"detached"}"#;
    let mut text = script(&[
        ("Be brief", 0, &calls(team)),
        ("I am lead", 0, &format!("{}, {}", calls(any), calls(detached))),
        ("I am doer", 0, &step("act", r#"{"on":"it"}"#)),
        ("I am doer", 1, &says("done")),
        ("I am bad", 0, "{ error = { kind = \"permission\", message = \"no\" } }"),
    ]);
    text += &otherwise(&says("heard"));
    let names = ["lead", "doer", "bad"];
    (text, names.into_iter().fold(Roster::default(), |roster, name| roster.with(agent(name))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_survives_death_at_every_write() {
    let (text, roster) = company();
    let mut died = 0;
    for last in 0..70 {
        for death in [Death::Before, Death::After] {
            let journal = Arc::new(MemoryJournal::new());
            let mut team = Team::new(text.clone(), roster.clone());
            team.journal = Arc::new(Mortal::new(&journal, last, death));
            let first = team.orchestrator();
            let accepted = first.invoke(new_task("go")).await;
            if let Ok(AcceptedTask { task_id, .. }) = &accepted {
                // It ends, or it dies.
                let _ = tokio::time::timeout(Duration::from_secs(20), first.wait(task_id)).await;
            }
            first.shutdown(Duration::from_secs(5)).await;
            team.journal = journal.clone() as Arc<dyn Journal>;
            let place = format!("{death:?} write {last}");
            let second = team.orchestrator();
            let recovered = second.recover().await.expect("a list");
            died += usize::from(!recovered.begun.is_empty());
            let Some(root) = team.tasks().await.first().map(|task| task.task_id.clone()) else {
                continue;
            };
            let ended = tokio::time::timeout(Duration::from_secs(20), second.wait(&root)).await;
            let state = ended.expect(&place).expect(&place);
            assert_eq!(state.status, TaskStatus::Completed, "{place}: {:?}", state.detail);
            second.shutdown(Duration::from_secs(5)).await;
            check(&team, &root, &place).await;
        }
    }
    assert!(died > 60, "it died {died} times");
}

#[tokio::test]
async fn what_was_left_below_a_task_that_has_ended_is_not_taken_up() {
    let team = Team::new(
        script(&[
            ("Be brief", 0, &calls(r#"{"agent":"slow","prompt":"1"}"#)),
            ("I am slow", 0, "{ stall = true }"),
        ]),
        Roster::default().with(agent("slow")),
    );
    let first = team.orchestrator();
    let root = first.invoke(new_task("go")).await.expect("accepted").task_id;
    let mut follower = first.follow(None, antiphon_core::Position(0));
    while follower.next().await.expect("an event").task_id == root {}
    first.shutdown(Duration::ZERO).await;
    // Ended by a process that was killed before it ended the child.
    let state = first.task(&root).await.expect("a task");
    let failed = antiphon_core::StatusChanged {
        detail: Some(json!({"code": "refused", "error": "x"})),
        ..antiphon_core::StatusChanged::new(TaskStatus::Failed)
    };
    let append = antiphon_core::port::Append {
        task_id: root.clone(),
        expected: antiphon_core::port::Expected::At(state.seq),
        at: chrono::DateTime::UNIX_EPOCH,
        events: vec![failed.into()],
        key: None,
    };
    team.journal.append(append).await.expect("written");
    let child = team.tasks().await[1].task_id.clone();
    let second = team.orchestrator();
    let resumed = second.resume(&child).await;
    assert!(matches!(resumed, Err(antiphon_runtime::OrchestratorError::Ended { .. })));
    assert_eq!(team.tasks().await[1].status, TaskStatus::Canceled);
}

/// No child dispatched twice, none orphaned, no result lost.
async fn check(team: &Team, root: &TaskId, place: &str) {
    let tasks = team.tasks().await;
    let counts = tasks.iter().fold(BTreeMap::new(), |mut counts, task| {
        *counts.entry(task.agent.as_str()).or_insert(0) += 1;
        counts
    });
    let expected = BTreeMap::from([("tester", 1), ("lead", 2), ("doer", 4), ("bad", 2)]);
    assert_eq!(counts, expected, "{place}");
    assert!(tasks.iter().all(|task| task.status.is_terminal()), "{place}");
    let mut named = std::collections::HashSet::new();
    for event in crate::world::events(&*team.journal).await {
        if let EventBody::Dispatched(dispatched) = event.body {
            for child in dispatched.children {
                assert!(named.insert(child), "{place}: named twice");
            }
        }
    }
    let created: std::collections::HashSet<TaskId> =
        tasks.iter().filter(|task| task.task_id != *root).map(|t| t.task_id.clone()).collect();
    assert_eq!(named, created, "{place}");
    for (what, times) in team.tools.done() {
        assert!(times <= 4, "{place}: {what} was done {times} times by four");
    }
}
