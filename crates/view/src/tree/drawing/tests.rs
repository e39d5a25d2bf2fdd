use antiphon_core::{
    Cost, ModelRef, Seq, SessionId, TaskCreated, TaskId, TaskStatus, TaskSummary, Usage, WaitingFor,
};
use chrono::DateTime;

use super::*;
use crate::tree::{TaskDetail, TreeTotals};

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
fn tree_of(mut oldest_first: Vec<TaskSummary>) -> TaskTree {
    oldest_first.reverse();
    TaskTree::new(&TaskId::parse("top").unwrap(), oldest_first).unwrap()
}

fn team() -> TaskTree {
    let asks = TaskSummary {
        waiting_for: Some(WaitingFor::Approval),
        ..task("c", Some("top"), "checker", TaskStatus::InputRequired)
    };
    tree_of(vec![
        task("top", None, "planner", TaskStatus::Running),
        task("a", Some("top"), "researcher", TaskStatus::Completed),
        task("b", Some("top"), "writer", TaskStatus::Running),
        asks,
        task("b1", Some("b"), "editor", TaskStatus::Failed),
    ])
}

fn drawn(tree: &TaskTree, width: usize, collapse: Collapse) -> String {
    let prices = prices();
    let drawing = TreeDrawing {
        prices: &prices,
        now: at(80),
        width,
        collapse,
        last_column: LastColumn::Output,
        colors: Colors::Off,
    };
    drawing.lines(tree).join("\n")
}

#[test]
fn a_tree_has_a_line_per_task_totals_below_each_parent_and_a_last_line() {
    let expected = "\
planner         ● running    80 s  1200  $0.0020  Work of planner │ planner says so
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  Work of researcher │ researcher says so
├─ writer       ● running    80 s  1200  $0.0020  Work of writer │ writer says so
│  │ Σ 1 below                     1200  $0.0020
│  └─ editor    ✗ failed     12 s  1200  $0.0020  Work of editor │ editor says so
└─ checker      ? asks       80 s  1200  $0.0020  Work of checker │ checker says so
5 tasks (1 completed, 1 failed, 1 asks, 2 running) · 6000 tokens · $0.0100 · 80 s";
    assert_eq!(drawn(&team(), 100, Collapse::Beyond(12)), expected);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [20, 33, 40, 64, 80, 132] {
        for line in drawn(&team(), width, Collapse::Never).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let narrow = "\
planner         ● running    80 s  1200  $0.0020  Work of… │ planner says…
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  Work of… │ researcher s…";
    let at_74 = drawn(&team(), 74, Collapse::Never);
    assert!(at_74.starts_with(narrow), "{at_74}");
    let narrower = "\
planner         ● running    80 s  1200  $0.0020  planner …
│ Σ 4 below                        4800  $0.0080
├─ researcher   ✓ completed  12 s  1200  $0.0020  research…";
    let at_59 = drawn(&team(), 59, Collapse::Never);
    assert!(at_59.starts_with(narrower), "{at_59}");
}

#[test]
fn of_many_siblings_those_that_need_attention_are_shown_and_the_rest_counted() {
    let mut tasks = vec![task("top", None, "planner", TaskStatus::Running)];
    for number in 0..1000 {
        let status = match number {
            700 => TaskStatus::Failed,
            800..805 => TaskStatus::Running,
            _ => TaskStatus::Completed,
        };
        tasks.push(task(&format!("t{number}"), Some("top"), &format!("w{number}"), status));
    }
    let tree = tree_of(tasks);
    let drawn = drawn(&tree, 60, Collapse::Beyond(3));
    let expected = "\
planner         ● running  80 s     1200  $0.0020  planner …
│ Σ 1000 below                   1200000  $2.0000
├─ w700         ✗ failed   12 s     1200  $0.0020  w700 say…
├─ w800         ● running  80 s     1200  $0.0020  w800 say…
├─ w801         ● running  80 s     1200  $0.0020  w801 say…
└─ … 994 more completed, 3 running
1001 tasks (994 completed, 1 failed, 6 running) · 1201200 t…";
    assert_eq!(drawn, expected);
    assert_eq!(shown_tasks(&tree, Collapse::Never).len(), 1001);
}

#[test]
fn a_single_task_is_shown_and_not_counted() {
    let mut tasks = vec![task("top", None, "planner", TaskStatus::Running)];
    for id in ["a", "b", "c"] {
        tasks.push(task(id, Some("top"), id, TaskStatus::Completed));
    }
    assert_eq!(shown_tasks(&tree_of(tasks), Collapse::Beyond(2)), [0, 1, 2, 3]);
}

#[test]
fn a_runner_and_handovers_are_named() {
    let mut tree = tree_of(vec![task("top", None, "writer", TaskStatus::Completed)]);
    let created: TaskCreated = serde_json::from_value(serde_json::json!({
        "agent": "planner", "session_id": "talk", "runner": { "kind": "sandbox" },
    }))
    .unwrap();
    let mut detail = TaskDetail::created(&created);
    detail.handovers = vec!["planner".to_owned()];
    detail.output = Some("the last line".to_owned());
    tree.set_detail(0, detail);
    let expected = "\
planner → writer @sandbox  ✓ completed  12 s  1200  $0.0020  Work of writer │ the last line
1 task (1 completed) · 1200 tokens · $0.0020 · 12 s";
    assert_eq!(drawn(&tree, 100, Collapse::Beyond(12)), expected);
}

#[test]
fn a_total_with_an_unknown_price_is_unknown() {
    let mut other = task("a", Some("top"), "researcher", TaskStatus::Completed);
    other.spent = [("unknown/model".to_owned(), Usage::default())].into();
    let tree = tree_of(vec![task("top", None, "planner", TaskStatus::Completed), other]);
    let totals = tree.totals(&prices());
    let usage = Usage { input_tokens: 1000, output_tokens: 200, ..Usage::default() };
    assert_eq!(totals[0], TreeTotals { tasks: 2, usage, cost: None });
    assert_eq!(
        TreeTotals::of(&tree.top().summary, &prices()).cost,
        Some(Cost { nano_usd: 2_000_000 })
    );
    assert!(drawn(&tree, 100, Collapse::Never).contains("cost unknown"));
}

#[test]
fn tasks_below_the_deepest_shown_level_are_counted_and_do_not_overflow_the_stack() {
    let mut tasks = vec![task("top", None, "deep", TaskStatus::Running)];
    for level in 1..5000 {
        let above = if level == 1 { "top".to_owned() } else { format!("t{}", level - 1) };
        tasks.push(task(&format!("t{level}"), Some(&above), "deep", TaskStatus::Running));
    }
    let tree = tree_of(tasks);
    assert_eq!(shown_tasks(&tree, Collapse::Never).len(), 40);
    assert_eq!(tree.totals(&prices())[0].tasks, 5000);
}

#[test]
fn text_of_agents_contains_no_control_characters() {
    let mut evil = task("top", None, "evil\u{1b}[2J", TaskStatus::Running);
    evil.title = "one\ntwo\u{1b}[31m".to_owned();
    let drawn = drawn(&tree_of(vec![evil]), 100, Collapse::Never);
    assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
    assert_eq!(drawn.lines().count(), 2, "{drawn:?}");
}
