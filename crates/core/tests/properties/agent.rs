//! No sequence of attempts takes an agent where the table does not.

use antiphon_core::AgentState::Idle;
use antiphon_core::{
    AgentId, AgentState, AgentStatus, DomainError, Event, EventBody, Position, Seq, StateChanged,
    TaskId,
};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::any_exchange::state;
use crate::config;

fn start() -> DateTime<Utc> {
    DateTime::from_timestamp(0, 0).unwrap()
}

/// What may happen to an agent at work.
#[derive(Debug, Clone, Copy)]
enum Happening {
    /// It tries to change to this state.
    Attempt(AgentState),
    /// It changes to the next state of its step.
    Step,
    /// Its run fails or is canceled, and it starts again.
    Failure,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => state().prop_map(Happening::Attempt),
        4 => Just(Happening::Step),
        1 => Just(Happening::Failure),
    ]
}

/// Lets things happen and writes down every move, as the journal would.
fn journal(happenings: &[Happening]) -> Vec<StateChanged> {
    let mut status = AgentStatus::started(AgentId::default(), start());
    let mut moves = Vec::new();
    for happening in happenings {
        let from = status.state;
        let to = match happening {
            Happening::Attempt(to) => *to,
            Happening::Step => from.next(),
            Happening::Failure => {
                status = AgentStatus::started(status.id, start());
                continue;
            }
        };
        if status.transition(to, start()).is_ok() {
            moves.push(StateChanged::new(status.id, from, to));
        }
    }
    moves
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn only_legal_moves_are_made_and_a_refused_one_changes_nothing(attempts in vec(state(), 0..64)) {
        let mut status = AgentStatus::started(AgentId::default(), start());
        for (second, to) in (1..).zip(attempts) {
            let before = status.clone();
            let now = start() + TimeDelta::seconds(second);
            match status.transition(to, now) {
                Ok(()) => {
                    prop_assert!(to == before.state || to == before.state.next());
                    let expected = AgentStatus {
                        id: before.id, state: to, last_activity: now, messages_processed: 0,
                    };
                    prop_assert_eq!(&status, &expected);
                }
                Err(error) => {
                    let from = before.state;
                    prop_assert_eq!(error, DomainError::InvalidStateTransition { from, to });
                    prop_assert_eq!(&status, &before);
                }
            }
        }
    }

    #[test]
    fn an_observer_of_the_journal_sees_no_illegal_move(happenings in vec(happening(), 0..96)) {
        let mut stands = Idle;
        for moved in journal(&happenings) {
            prop_assert_eq!(AgentState::validate_transition(moved.from, moved.to), Ok(()));
            prop_assert!(moved.from == stands || moved.from == Idle);
            stands = moved.to;
        }
    }

    #[test]
    fn joined_changes_are_the_same_moves(happenings in vec(happening(), 0..96)) {
        let single = journal(&happenings);
        let mut joined: Vec<StateChanged> = Vec::new();
        for moved in &single {
            if !joined.last_mut().is_some_and(|last| last.join(moved)) {
                joined.push(moved.clone());
            }
        }
        let moves = |changes: &[StateChanged]| -> Vec<_> {
            changes.iter().flat_map(|change| change.moves().collect::<Vec<_>>()).collect()
        };
        prop_assert_eq!(moves(&joined), moves(&single));
        for (earlier, later) in joined.iter().zip(joined.iter().skip(1)) {
            prop_assert!(earlier.to != later.from, "what follows is joined");
        }
        for change in &joined {
            let json = serde_json::to_string(&EventBody::from(change.clone())).unwrap();
            prop_assert_eq!(&serde_json::from_str::<StateChanged>(&json).unwrap(), change);
            prop_assert!(change.moves().all(|(_, to)| change.enters(to)));
        }
    }

    #[test]
    fn the_journal_of_an_agent_survives_its_json(happenings in vec(happening(), 0..32)) {
        let events: Vec<Event> = (1..).zip(journal(&happenings)).map(|(count, moved)| Event {
            position: Position(count),
            task_id: TaskId::parse("t1").unwrap(),
            seq: Seq(count),
            at: start(),
            body: EventBody::from(moved),
        }).collect();
        let lines: Vec<String> =
            events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let read: Vec<Event> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(read, events);
    }
}
