//! Selects which queued messages are read next. Pure.
//!
//! More salient messages come first. Among equals, the first message of every sender comes before the
//! second of any, so that a sender with many messages does not delay others; then in order of arrival.
//!
//! A turn takes one request, which its final answer answers, or up to [`TURN_MESSAGES_MAX`] other messages
//! that come before the next request. Messages that do not wake the agent are read with those that do,
//! up to [`QUIET_MESSAGES_MAX`] at a time. Neither group exceeds [`TURN_MESSAGES_BYTES_MAX`], unless it is one message.

use std::cmp::Reverse;
use std::collections::HashMap;

use antiphon_core::{HandlingMode, InteractionId, MessageQueued, Salience, Sender};

/// Maximum number of messages that a turn begins with, besides those that do not wake the agent.
pub const TURN_MESSAGES_MAX: usize = 16;

/// Maximum number of messages that do not wake the agent and are read with a turn.
pub const QUIET_MESSAGES_MAX: usize = 64;

/// Maximum bytes of each of the two groups.
pub const TURN_MESSAGES_BYTES_MAX: usize = 1024 * 1024;

/// The messages the next turn begins with; empty when none wakes the agent.
pub(crate) fn for_turn(queue: &[MessageQueued]) -> Vec<InteractionId> {
    let in_order: Vec<&MessageQueued> = ordered(queue.iter().filter(|queued| queued.wakes()));
    let Some(first) = in_order.first() else { return Vec::new() };
    let mut taken =
        not_too_long(queue.iter().filter(|queued| !queued.wakes()).take(QUIET_MESSAGES_MAX));
    if first.expects_answer() {
        taken.push(first.id);
    } else {
        let others = in_order
            .into_iter()
            .take_while(|queued| !queued.expects_answer())
            .take(TURN_MESSAGES_MAX);
        taken.extend(not_too_long(others));
    }
    taken
}

/// The messages that join the current turn. A turn is about at most one request; others wait.
pub(crate) fn for_steering(queue: &[MessageQueued], about: TurnSubject) -> Vec<InteractionId> {
    let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer && queued.wakes();
    let mut requests = usize::from(about == TurnSubject::Request);
    let mut fits = |queued: &&MessageQueued| {
        requests += usize::from(queued.expects_answer());
        !queued.expects_answer() || requests == 1
    };
    let steering = ordered(queue.iter().filter(steers)).into_iter().filter(|queued| fits(queued));
    not_too_long(steering.take(TURN_MESSAGES_MAX))
}

/// What a turn is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnSubject {
    /// A request, which its final answer answers.
    Request,
    /// Anything else.
    Anything,
}

/// As many as fit together; the first one always.
fn not_too_long<'a>(found: impl Iterator<Item = &'a MessageQueued>) -> Vec<InteractionId> {
    let mut bytes = 0;
    let mut fits = |(place, queued): &(usize, &MessageQueued)| {
        bytes += queued.content.bytes();
        *place == 0 || bytes <= TURN_MESSAGES_BYTES_MAX
    };
    found.enumerate().take_while(|each| fits(each)).map(|(_, queued)| queued.id).collect()
}

fn ordered<'a>(waiting: impl Iterator<Item = &'a MessageQueued>) -> Vec<&'a MessageQueued> {
    let mut ranks: HashMap<(&Sender, Salience), usize> = HashMap::new();
    let mut ranked: Vec<(Reverse<Salience>, usize, &MessageQueued)> = waiting
        .map(|queued| {
            let rank = ranks.entry((&queued.from, queued.salience())).or_default();
            *rank += 1;
            (Reverse(queued.salience()), *rank, queued)
        })
        .collect();
    // The sort is stable: equals stay in order of arrival.
    ranked.sort_by_key(|(salience, rank, _)| (*salience, *rank));
    ranked.into_iter().map(|(_, _, queued)| queued).collect()
}
