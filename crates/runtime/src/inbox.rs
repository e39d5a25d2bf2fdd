//! Which of the interactions that wait are read next. Pure.
//!
//! The more salient come first. Among equals, everybody's first comes before anybody's second, so
//! that one who sends much does not keep others waiting; then they come in the order of arrival.
//!
//! A turn takes one request, whose answer is its last word, or up to [`TAKEN_MAX`] of the others that
//! come before the next request. What wakes nobody is read with whatever does, up to [`ALONG_MAX`] of
//! it at a time; and neither is more than [`TAKEN_BYTES_MAX`] long, unless it is a single one.

use std::cmp::Reverse;
use std::collections::HashMap;

use antiphon_core::{HandlingMode, InteractionId, MessageQueued, Salience, Sender};

/// Interactions that one turn begins with, beside those that wake nobody.
pub const TAKEN_MAX: usize = 16;

/// Interactions that wake nobody and are read along.
pub const ALONG_MAX: usize = 64;

/// Bytes of the ones, and of the others, that one turn begins with.
pub const TAKEN_BYTES_MAX: usize = 1024 * 1024;

/// What the next turn begins with; empty when nothing is worth one.
pub(crate) fn for_turn(queue: &[MessageQueued]) -> Vec<InteractionId> {
    let in_order: Vec<&MessageQueued> = ordered(queue.iter().filter(|queued| queued.wakes()));
    let Some(first) = in_order.first() else { return Vec::new() };
    let mut taken = not_too_long(queue.iter().filter(|queued| !queued.wakes()).take(ALONG_MAX));
    if first.expects_answer() {
        taken.push(first.id);
    } else {
        let others =
            in_order.into_iter().take_while(|queued| !queued.expects_answer()).take(TAKEN_MAX);
        taken.extend(not_too_long(others));
    }
    taken
}

/// What joins a turn that goes on. A turn is about one request at most: another one waits for its own.
pub(crate) fn for_steering(queue: &[MessageQueued], about: About) -> Vec<InteractionId> {
    let steers = |queued: &&MessageQueued| queued.mode == HandlingMode::Steer && queued.wakes();
    let mut requests = usize::from(about == About::Request);
    let mut fits = |queued: &&MessageQueued| {
        requests += usize::from(queued.expects_answer());
        !queued.expects_answer() || requests == 1
    };
    let steering = ordered(queue.iter().filter(steers)).into_iter().filter(|queued| fits(queued));
    not_too_long(steering.take(TAKEN_MAX))
}

/// What a turn is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// A request, which its last word answers.
    Request,
    /// Anything else.
    Anything,
}

/// As many as are not too long together, and the first however long it is.
fn not_too_long<'a>(found: impl Iterator<Item = &'a MessageQueued>) -> Vec<InteractionId> {
    let mut bytes = 0;
    let mut fits = |(place, queued): &(usize, &MessageQueued)| {
        bytes += queued.content.bytes();
        *place == 0 || bytes <= TAKEN_BYTES_MAX
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
    // The sort is stable: arrival decides among equals.
    ranked.sort_by_key(|(salience, rank, _)| (*salience, *rank));
    ranked.into_iter().map(|(_, _, queued)| queued).collect()
}
