//! Canceled answers, and readers that stop waiting for a moment.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use antiphon_core::port::Cancel;
use antiphon_core::{StopReason, StreamError, StreamEvent};
use tokio::task::yield_now;

use super::reader::{open, open_with, play, read_text, switch};
use super::states::{three_deltas, three_deltas_whole};
use super::transcript::Transcript;
use super::{Answer, Ending, Scenario, Step, Wire};
use crate::suite::{During, Outcome, equal};

/// More turns than an answer of three deltas can need.
const TURNS_MAX: usize = 1_000_000;

pub(super) async fn canceling_unblocks_a_stalled_next(wire: &dyn Wire) -> Outcome {
    let stalled = Scenario::ending(Ending::Stall, [Step::text(0, "so far")]);
    let stage = play(wire, &[stalled]).await?;
    let (switch, cancel) = switch();
    let mut answer = open_with(wire, &stage, cancel);
    read_text(&mut *answer, "so far").await?;
    let later = async {
        for _ in 0..10 {
            yield_now().await;
        }
        drop(switch);
    };
    let (next, ()) = tokio::join!(answer.next(), later);
    equal("next when canceled", &next, &Err(StreamError::Canceled))?;
    let again = answer.next().await;
    equal("next after that", &again, &Err(StreamError::Canceled))
}

pub(super) async fn a_canceled_answer_is_partial_and_aborted(wire: &dyn Wire) -> Outcome {
    let stalled = Scenario::ending(Ending::Stall, three_deltas());
    let stage = play(wire, &[stalled]).await?;
    let (switch, cancel) = switch();
    let mut answer = open_with(wire, &stage, cancel);
    read_text(&mut *answer, "one two three").await?;
    drop(switch);
    let transcript = Transcript::read(&mut *answer).await;
    let canceled = Some(StreamError::Canceled);
    equal("the end", &transcript.error, &canceled)?;
    let message = answer.message().during("message")?;
    equal("the text", message.text().as_str(), "one two three")?;
    equal("its stop reason", &message.stop_reason, &StopReason::Aborted)
}

pub(super) async fn an_answer_that_is_canceled_before_it_begins_is_empty(
    wire: &dyn Wire,
) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let canceled = Cancel::when(std::future::ready(()));
    let mut answer = open_with(wire, &stage, canceled);
    let sent = || stage.traffic.as_ref().map(|traffic| traffic.borrow().begun);
    let sent_before = sent();
    equal("next", &answer.next().await, &Err(StreamError::Canceled))?;
    let message = answer.message().during("message")?;
    equal("the content", &message.content, &vec![])?;
    equal("its stop reason", &message.stop_reason, &StopReason::Aborted)?;
    equal("requests sent", &sent(), &sent_before)
}

/// Each `next` is polled a few times first by callers that stop waiting when it is pending; then by
/// one that waits, whose waker must be woken.
pub(super) async fn a_dropped_next_has_consumed_nothing(wire: &dyn Wire) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let mut answer = open(wire, &stage);
    let mut seen = Transcript::default();
    for turn in 0..TURNS_MAX {
        let next = match poll_in_passing(&mut *answer, turn % 4) {
            Some(next) => next,
            None => answer.next().await,
        };
        match next.during("next")? {
            Some(event) => seen.note(event),
            None => break,
        }
    }
    equal("the text that was read", seen.text.as_str(), "one two three")?;
    let message = answer.message().during("message")?;
    equal("the message", message.text().as_str(), "one two three")
}

/// Polls that many times, without waiting.
fn poll_in_passing(answer: &mut dyn Answer, times: usize) -> Option<Next> {
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match pin!(answer.next()).poll(&mut context) {
        Poll::Ready(next) => Some(next),
        Poll::Pending => None,
    })
}

type Next = Result<Option<StreamEvent>, StreamError>;
