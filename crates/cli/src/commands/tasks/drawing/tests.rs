use antiphon_core::{
    Cost, ModelRef, Seq, SessionId, TaskCreated, TaskId, TaskStatus, TaskSummary, Usage, WaitingFor,
};
use chrono::DateTime;

use super::*;
use crate::watch::{Detail, Sum};

fn task(id: &str, parent: Option<&str>, agent: &str, status: TaskStatus) -> TaskSummary {
    let parse = |id: &str| TaskId::parse(id).unwrap();
    let created = TaskCreated {
        parent: parent.map(parse),
        root: parent.map(|_| parse("top")),
        ..TaskCreated::new(agent, SessionId::parse("talk").unwrap())
    };
    let usage = Usage { input_tokens: 1000, output_tokens: 200, ..Usage::default() };
    let created_at = DateTime::UNIX_EPOCH;
    let ended_at = status.is_terminal().then(|| at(12));
    TaskSummary {
        status,
        ended_at,
        title: format!("Work of {agent}"),
        preview: Some(format!("{agent} says so")),
        spent: [("scripted/x".to_owned(), usage)].into(),
        seq: Seq(5),
        ..TaskSummary::created(parse(id), &created, created_at)
    }
}

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn prices() -> PriceTable {
    let price = serde_json::from_str(r#"{"input": 1.0, "output": 5.0}"#).unwrap();
    [(ModelRef::parse("scripted/x").unwrap(), price)].into_iter().collect()
}

/// As a journal lists them: the newest first.
fn family(mut oldest_first: Vec<TaskSummary>) -> Family {
    oldest_first.reverse();
    Family::new(&TaskId::parse("top").unwrap(), oldest_first).unwrap()
}

fn team() -> Family {
    let asks = TaskSummary {
        waiting_for: Some(WaitingFor::Approval),
        ..task("c", Some("top"), "checker", TaskStatus::InputRequired)
    };
    family(vec![
        task("top", None, "planner", TaskStatus::Running),
        task("a", Some("top"), "researcher", TaskStatus::Completed),
        task("b", Some("top"), "writer", TaskStatus::Running),
        asks,
        task("b1", Some("b"), "editor", TaskStatus::Failed),
    ])
}

fn drawn(family: &Family, width: usize, fold: Fold) -> String {
    let prices = prices();
    let drawing =
        Drawing { prices: &prices, now: at(80), width, fold, telling: Telling::Words, ink: None };
    drawing.lines(family).join("\n")
}

#[test]
fn a_tree_has_a_line_per_task_a_sum_below_each_parent_and_a_total() {
    let expected = "\
planner         ● running    80 s  1200  $0.0020  Work of planner │ planner says so
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  Work of researcher │ researcher says so
├─ writer       ● running    80 s  1200  $0.0020  Work of writer │ writer says so
│  │ Σ 1 below                     1200  $0.0020
│  └─ editor    ✗ failed     12 s  1200  $0.0020  Work of editor │ editor says so
└─ checker      ? asks       80 s  1200  $0.0020  Work of checker │ checker says so
5 tasks (1 completed, 1 failed, 1 asks, 2 running) · 6000 tokens · $0.0100 · 80 s";
    assert_eq!(drawn(&team(), 100, Fold::Beyond(12)), expected);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [20, 33, 40, 64, 80, 132] {
        for line in drawn(&team(), width, Fold::Nothing).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let narrow = "\
planner         ● running    80 s  1200  $0.0020  Work of… │ planner says…
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  Work of… │ researcher s…";
    let at_74 = drawn(&team(), 74, Fold::Nothing);
    assert!(at_74.starts_with(narrow), "{at_74}");
    let narrower = "\
planner         ● running    80 s  1200  $0.0020  planner …
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  research…";
    let at_59 = drawn(&team(), 59, Fold::Nothing);
    assert!(at_59.starts_with(narrower), "{at_59}");
}

#[test]
fn of_many_side_by_side_those_that_matter_are_shown_and_the_rest_counted() {
    let mut tasks = vec![task("top", None, "planner", TaskStatus::Running)];
    for number in 0..1000 {
        let status = match number {
            700 => TaskStatus::Failed,
            800..805 => TaskStatus::Running,
            _ => TaskStatus::Completed,
        };
        tasks.push(task(&format!("t{number}"), Some("top"), &format!("w{number}"), status));
    }
    let family = family(tasks);
    let drawn = drawn(&family, 60, Fold::Beyond(3));
    let expected = "\
planner         ● running  80 s     1200  $0.0020  planner …
│ Σ 1000 below                   1200000  $2.0000
├─ w700         ✗ failed   12 s     1200  $0.0020  w700 say…
├─ w800         ● running  80 s     1200  $0.0020  w800 say…
├─ w801         ● running  80 s     1200  $0.0020  w801 say…
└─ … 994 more completed, 3 running
1001 tasks (994 completed, 1 failed, 6 running) · 1201200 t…";
    assert_eq!(drawn, expected);
    assert_eq!(shown(&family, Fold::Nothing).len(), 1001);
}

#[test]
fn a_line_is_not_saved_by_counting_one_task() {
    let mut tasks = vec![task("top", None, "planner", TaskStatus::Running)];
    for id in ["a", "b", "c"] {
        tasks.push(task(id, Some("top"), id, TaskStatus::Completed));
    }
    assert_eq!(shown(&family(tasks), Fold::Beyond(2)), [0, 1, 2, 3]);
}

#[test]
fn a_runner_and_handovers_are_named() {
    let mut family = family(vec![task("top", None, "writer", TaskStatus::Completed)]);
    let created: TaskCreated = serde_json::from_value(serde_json::json!({
        "agent": "planner", "session_id": "talk", "runner": { "kind": "sandbox" },
    }))
    .unwrap();
    let mut detail = Detail::created(&created);
    detail.handovers = vec!["planner".to_owned()];
    detail.output = Some("the last line".to_owned());
    family.learn(0, detail);
    let expected = "\
planner → writer @sandbox  ✓ completed  12 s  1200  $0.0020  Work of writer │ the last line
1 task (1 completed) · 1200 tokens · $0.0020 · 12 s";
    assert_eq!(drawn(&family, 100, Fold::Beyond(12)), expected);
}

#[test]
fn a_price_that_is_not_known_makes_no_sum_look_known() {
    let mut other = task("a", Some("top"), "researcher", TaskStatus::Completed);
    other.spent = [("nobody/knows".to_owned(), Usage::default())].into();
    let family = family(vec![task("top", None, "planner", TaskStatus::Completed), other]);
    let sums = family.sums(&prices());
    let usage = Usage { input_tokens: 1000, output_tokens: 200, ..Usage::default() };
    assert_eq!(sums[0], Sum { tasks: 2, usage, cost: None });
    assert_eq!(Sum::of(&family.top().summary, &prices()).cost, Some(Cost { nano_usd: 2_000_000 }));
    assert!(drawn(&family, 100, Fold::Nothing).contains("cost unknown"));
}

#[test]
fn a_tree_that_is_deeper_than_is_shown_is_counted_and_does_not_overflow() {
    let mut tasks = vec![task("top", None, "deep", TaskStatus::Running)];
    for level in 1..5000 {
        let above = if level == 1 { "top".to_owned() } else { format!("t{}", level - 1) };
        tasks.push(task(&format!("t{level}"), Some(&above), "deep", TaskStatus::Running));
    }
    let family = family(tasks);
    assert_eq!(shown(&family, Fold::Nothing).len(), 40);
    assert_eq!(family.sums(&prices())[0].tasks, 5000);
}

#[test]
fn what_agents_wrote_cannot_drive_the_terminal() {
    let mut evil = task("top", None, "evil\u{1b}[2J", TaskStatus::Running);
    evil.title = "one\ntwo\u{1b}[31m".to_owned();
    let drawn = drawn(&family(vec![evil]), 100, Fold::Nothing);
    assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
    assert_eq!(drawn.lines().count(), 2, "{drawn:?}");
}
