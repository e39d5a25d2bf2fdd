//! Where an append may be written, over every short history of a task.

use antiphon_core::port::{Append, Expected, JournalError, TaskHead};
use antiphon_core::{
    EventBody, HandlingMode, MessageAppended, MessageQueued, Seq, SessionId, TaskCreated, TaskId,
    UserMessage,
};

use crate::{UUID, ten};

/// Longest history, in events.
const EVENTS_MAX: usize = 5;

fn task_id() -> TaskId {
    TaskId::parse("t1").unwrap()
}

fn note() -> EventBody {
    MessageAppended::new(UserMessage::text("hi", ten())).into()
}

fn arrival() -> EventBody {
    let id = UUID.parse::<uuid::Uuid>().unwrap().into();
    MessageQueued::of_user(id, HandlingMode::Queue, UserMessage::text("hi", ten())).into()
}

fn creation() -> EventBody {
    TaskCreated::new("dev", SessionId::parse("s1").unwrap()).into()
}

/// Every history of up to so many events: a creation, and arrivals and other things behind it.
fn histories() -> Vec<Vec<EventBody>> {
    let mut all = vec![vec![creation()]];
    let mut begin = 0;
    for _ in 1..EVENTS_MAX {
        let longer: Vec<_> = all[begin..]
            .iter()
            .flat_map(|history| {
                [note(), arrival()].map(|next| [history.clone(), vec![next]].concat())
            })
            .collect();
        begin = all.len();
        all.extend(longer);
    }
    all
}

fn head(history: &[EventBody], ended: bool) -> TaskHead {
    let settled = history.iter().rposition(|body| !body.is_arrival()).map_or(0, |at| at + 1);
    TaskHead { seq: seq(history.len()), settled: seq(settled), ended }
}

fn seq(n: usize) -> Seq {
    Seq(n as u64)
}

fn append(expected: Expected) -> Append {
    Append { task_id: task_id(), expected, at: ten(), events: vec![note()], key: None }
}

fn stale(expected: Seq, actual: Seq) -> Result<(), JournalError> {
    Err(JournalError::Stale { task_id: task_id(), expected, actual })
}

#[test]
fn a_writer_is_let_in_where_nothing_but_arrivals_came_since() {
    let mut let_in = 0;
    for history in histories() {
        let (task, actual) = (Some(head(&history, false)), seq(history.len()));
        for believed in 0..=EVENTS_MAX + 1 {
            let since = history.get(believed..);
            let unseen = since.is_none_or(|since| since.iter().any(|body| !body.is_arrival()));
            let behind = append(Expected::AtOrArrivals(seq(believed))).check_position(task);
            let at = append(Expected::At(seq(believed))).check_position(task);
            let refused = stale(seq(believed), actual);
            assert_eq!(behind, if unseen { refused.clone() } else { Ok(()) }, "{history:?}");
            assert_eq!(at, if believed == history.len() { Ok(()) } else { refused });
            let_in += usize::from(!unseen);
        }
        assert_eq!(append(Expected::Exists).check_position(task), Ok(()));
        assert_eq!(append(Expected::NoTask).check_position(task), stale(Seq(0), actual));
    }
    // One for each history of so many events, and one more for each arrival at its end.
    assert_eq!(let_in, 57);
}

#[test]
fn a_task_that_is_not_there_is_before_its_first_event() {
    for expected in [Expected::At(Seq(3)), Expected::AtOrArrivals(Seq(3))] {
        assert_eq!(append(expected).check_position(None), stale(Seq(3), Seq(0)));
    }
    assert_eq!(append(Expected::Exists).check_position(None), stale(Seq(0), Seq(0)));
    let creation = Append { events: vec![creation()], ..append(Expected::Exists) };
    assert_eq!(creation.check_position(None), stale(Seq(0), Seq(0)));
    let creation = Append { expected: Expected::NoTask, ..creation };
    assert_eq!(creation.check_position(None), Ok(()));
}

#[test]
fn every_writer_learns_that_a_task_has_ended() {
    let task = Some(head(&[creation(), note()], true));
    for expected in [
        Expected::NoTask,
        Expected::At(Seq(2)),
        Expected::AtOrArrivals(Seq(2)),
        Expected::AtOrArrivals(Seq(9)),
        Expected::Exists,
    ] {
        let ended = Err(JournalError::Ended { task_id: task_id() });
        assert_eq!(append(expected).check_position(task), ended, "{expected:?}");
    }
}

#[test]
fn a_task_is_created_once_wherever_it_is() {
    let task = Some(head(&[creation(), note(), arrival()], false));
    for expected in [Expected::At(Seq(3)), Expected::AtOrArrivals(Seq(2)), Expected::Exists] {
        let again = Append { events: vec![creation()], ..append(expected) };
        let refused = again.check_position(task).unwrap_err();
        assert!(matches!(refused, JournalError::Invalid { .. }), "{expected:?}: {refused}");
    }
}
