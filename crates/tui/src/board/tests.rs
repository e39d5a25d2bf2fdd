use antiphon_core::{Position, Seq, SessionId, StatusChanged, TaskCreated};

use super::*;

fn id(name: &str) -> TaskId {
    TaskId::parse(name).unwrap()
}

fn event(task: &str, seq: u64, body: impl Into<EventBody>) -> Event {
    let at = DateTime::UNIX_EPOCH;
    Event { position: Position(1), task_id: id(task), seq: Seq(seq), at, body: body.into() }
}

fn begins(task: &str, parent: Option<&str>) -> Event {
    let parent = parent.map(id);
    let session = SessionId::parse("talk").unwrap();
    event(
        task,
        1,
        TaskCreated { root: parent.clone(), parent, ..TaskCreated::new("worker", session) },
    )
}

fn ends(task: &str) -> Event {
    event(task, 2, StatusChanged::new(TaskStatus::Completed))
}

fn shown(board: &Board) -> Vec<String> {
    let lines = board.lines(None, None, (80, 8), DateTime::UNIX_EPOCH);
    lines.iter().map(ToString::to_string).collect()
}

#[test]
fn of_a_thousand_trees_the_first_are_shown_and_the_others_are_counted() {
    let mut board = Board::default();
    for number in 0..1000 {
        board.apply(&begins(&format!("t{number}"), None));
    }
    assert_eq!(shown(&board).len(), 8);
    assert_eq!(shown(&board)[7], "  … 7 of 64, and 936 more trees (/tasks, ↓)");
    assert!(!board.wants_more());
    board.apply(&ends("t999"));
    assert_eq!(shown(&board)[7], "  … 7 of 64, and 935 more trees (/tasks, ↓)");
    board.apply(&ends("t0"));
    assert_eq!(shown(&board)[7], "  … 7 of 63, and 935 more trees (/tasks, ↓)");
    assert!(board.wants_more(), "one that was counted takes the place");
}

#[test]
fn a_tree_of_a_thousand_tasks_takes_as_many_rows_as_there_are() {
    let mut board = Board::default();
    board.apply(&begins("top", None));
    for number in 1..1000 {
        board.apply(&begins(&format!("t{number}"), Some("top")));
    }
    assert_eq!(shown(&board).len(), 8);
    assert_eq!(shown(&board)[7], "  … 7 of 1000 (/tasks, ↓)");
    let last = id("t999");
    let lines = board.lines(None, Some(&last), (80, 8), DateTime::UNIX_EPOCH);
    assert_eq!(lines.len(), 8, "the selected task is in view");
    board.apply(&ends("t1"));
    assert_eq!(shown(&board)[7], "  … 7 of 999 (/tasks, ↓)");
}
