//! Which of the interactions that wait are read next. Pure.
//!
//! The more salient come first. Among equals, everybody's first comes before anybody's second, so
//! that one who sends much does not keep others waiting; then they come in the order of arrival.
//!
//! A turn takes one request, whose answer is its last word, or up to [`TAKEN_MAX`] of the others that
//! come before the next request. What wakes nobody is read with whatever does.

use std::cmp::Reverse;
use std::collections::HashMap;

use antiphon_core::{HandlingMode, InteractionId, MessageQueued, Salience, Sender};

/// Interactions that one turn begins with, beside those that wake nobody.
pub const TAKEN_MAX: usize = 16;

/// What the next turn begins with; empty when nothing is worth one.
pub(crate) fn for_turn(queue: &[MessageQueued]) -> Vec<InteractionId> {
    let in_order: Vec<&MessageQueued> = ordered(queue.iter().filter(|queued| queued.wakes()));
    let Some(first) = in_order.first() else { return Vec::new() };
    let mut taken: Vec<InteractionId> =
        queue.iter().filter(|queued| !queued.wakes()).map(|queued| queued.id).collect();
    if first.is_owed() {
        taken.push(first.id);
    } else {
        let others = in_order.iter().take_while(|queued| !queued.is_owed()).take(TAKEN_MAX);
        taken.extend(others.map(|queued| queued.id));
    }
    taken
}

/// What joins a turn that goes on.
pub(crate) fn for_steering(queue: &[MessageQueued]) -> Vec<InteractionId> {
    let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer && queued.wakes();
    ordered(queue.iter().filter(steers)).into_iter().map(|queued| queued.id).collect()
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
    // The sort is stable: arrival decides among equals.
    ranked.sort_by_key(|(salience, rank, _)| (*salience, *rank));
    ranked.into_iter().map(|(_, _, queued)| queued).collect()
}
