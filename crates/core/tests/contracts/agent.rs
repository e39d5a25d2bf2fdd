//! The states of an agent.

use antiphon_core::AgentState::{Idle, Reflecting, Thinking, ToolCall};
use antiphon_core::{AgentId, AgentState, AgentStatus, DomainError};
use serde_json::json;

use crate::{at, both_ways, ten};

/// Every pair of states, and whether the move between them is allowed.
const MOVES: [(AgentState, AgentState, bool); 16] = [
    (Idle, Idle, true),
    (Idle, Thinking, true),
    (Idle, ToolCall, false),
    (Idle, Reflecting, false),
    (Thinking, Idle, false),
    (Thinking, Thinking, true),
    (Thinking, ToolCall, true),
    (Thinking, Reflecting, false),
    (ToolCall, Idle, false),
    (ToolCall, Thinking, false),
    (ToolCall, ToolCall, true),
    (ToolCall, Reflecting, true),
    (Reflecting, Idle, true),
    (Reflecting, Thinking, false),
    (Reflecting, ToolCall, false),
    (Reflecting, Reflecting, true),
];

fn agent() -> AgentId {
    "123e4567-e89b-12d3-a456-426614174001".parse::<uuid::Uuid>().unwrap().into()
}

#[test]
fn each_pair_of_states_is_allowed_or_refused_as_the_table_says() {
    for (from, to, allowed) in MOVES {
        let expected =
            if allowed { Ok(()) } else { Err(DomainError::InvalidStateTransition { from, to }) };
        assert_eq!(AgentState::validate_transition(from, to), expected);
    }
}

#[test]
fn a_live_agent_moves_where_the_table_allows_and_stays_whole_where_it_does_not() {
    for (from, to, allowed) in MOVES {
        let before =
            AgentStatus { id: agent(), state: from, last_activity: ten(), messages_processed: 42 };
        let mut after = before.clone();
        let later = at("2025-01-20T10:00:01Z");
        let moved = after.transition(to, later);
        if allowed {
            assert_eq!(moved, Ok(()));
            assert_eq!(
                after,
                AgentStatus {
                    id: agent(),
                    state: to,
                    last_activity: later,
                    messages_processed: 42,
                }
            );
        } else {
            assert_eq!(moved, Err(DomainError::InvalidStateTransition { from, to }));
            assert_eq!(after, before);
        }
    }
}

#[test]
fn a_lap_goes_through_every_state_in_order() {
    assert_eq!(AgentState::default(), Idle);
    assert_eq!(AgentState::ALL, [Idle, Thinking, ToolCall, Reflecting]);
    let mut status = AgentStatus::started(agent(), ten());
    for _ in 0..3 {
        for to in [Thinking, ToolCall, Reflecting, Idle] {
            assert_eq!(status.state.next(), to);
            assert_eq!(status.transition(to, ten()), Ok(()));
        }
    }
    // A step is no message.
    assert_eq!(
        status,
        AgentStatus { messages_processed: 0, ..AgentStatus::started(agent(), ten()) }
    );
}

#[test]
fn a_fresh_agent_is_idle_and_has_processed_nothing() {
    assert_eq!(
        AgentStatus::started(agent(), ten()),
        AgentStatus { id: agent(), state: Idle, last_activity: ten(), messages_processed: 0 }
    );
}

#[test]
fn the_status_of_an_agent_has_the_documented_json() {
    both_ways(
        &AgentStatus { id: agent(), state: Idle, last_activity: ten(), messages_processed: 42 },
        &json!({
            "id": "123e4567-e89b-12d3-a456-426614174001",
            "state": "idle",
            "last_activity": "2025-01-20T10:00:00Z",
            "messages_processed": 42
        }),
    );
}

#[test]
fn a_state_prints_as_its_word() {
    for (state, word) in
        [(Idle, "idle"), (Thinking, "thinking"), (ToolCall, "toolcall"), (Reflecting, "reflecting")]
    {
        assert_eq!(state.to_string(), word);
        assert_eq!(state.as_str(), word);
    }
}
