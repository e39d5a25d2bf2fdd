//! The states of a stream: what `next` and `message` return in each.

use antiphon_core::port::ProviderError;
use antiphon_core::{AssistantBlock, NotStarted, StopReason, StreamError};

use super::reader::{open, play, read_failing, read_text, read_whole};
use super::{Ending, Refusal, Scenario, Step, StopWord, Wire};
use crate::suite::{During, Outcome, ensure, equal};

/// `one two three` in three deltas.
pub(super) fn three_deltas() -> Vec<Step> {
    ["one ", "two ", "three"].map(|delta| Step::text(0, delta)).to_vec()
}

/// `one two three`, and the end.
pub(super) fn three_deltas_whole() -> Vec<Step> {
    let mut steps = three_deltas();
    steps.push(Step::BlockEnd { block: 0 });
    steps.push(Step::Stop(StopWord::EndTurn));
    steps
}

pub(super) async fn there_is_no_message_before_the_first_next(wire: &dyn Wire) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let answer = open(wire, &stage);
    equal("the message", &answer.message(), &Err(NotStarted))
}

pub(super) async fn the_message_of_a_running_answer_is_partial(wire: &dyn Wire) -> Outcome {
    let steps = vec![Step::text(0, "so far")];
    let stage = play(wire, &[Scenario::ending(Ending::Stall, steps)]).await?;
    let mut answer = open(wire, &stage);
    read_text(&mut *answer, "so far").await?;
    let message = answer.message().during("message")?;
    let expected = vec![AssistantBlock::text("so far")];
    equal("the partial message", &message.content, &expected)
}

pub(super) async fn the_message_of_a_complete_answer_is_whole(wire: &dyn Wire) -> Outcome {
    let (transcript, message) = read_whole(wire, three_deltas_whole()).await?;
    equal("the text that was read", transcript.text.as_str(), "one two three")?;
    let expected = vec![AssistantBlock::text("one two three")];
    equal("the message", &message.content, &expected)
}

pub(super) async fn the_end_is_repeated(wire: &dyn Wire) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let mut answer = open(wire, &stage);
    read_text(&mut *answer, "one two three").await?;
    for _ in 0..3 {
        equal("next at the end", &answer.next().await, &Ok(None))?;
    }
    Ok(())
}

pub(super) async fn an_error_is_repeated(wire: &dyn Wire) -> Outcome {
    let refused = Scenario::ending(Ending::Refused(Refusal::Authentication), []);
    let stage = play(wire, &[refused]).await?;
    let mut answer = open(wire, &stage);
    let first = answer.next().await;
    ensure!(first.is_err(), "a refused request is read with {first:?}");
    for _ in 0..2 {
        equal("next after an error", &answer.next().await, &first)?;
    }
    Ok(())
}

pub(super) async fn an_interrupted_answer_keeps_its_text(wire: &dyn Wire) -> Outcome {
    let (error, message) = read_failing(wire, Ending::Cut, three_deltas()).await?;
    equal("the error", &error, &ProviderError::Cut)?;
    equal("the text", message.text().as_str(), "one two three")?;
    equal("its stop reason", &message.stop_reason, &StopReason::Error)
}

pub(super) async fn an_answer_that_is_closed_early_is_partial_and_aborted(
    wire: &dyn Wire,
) -> Outcome {
    let stalled = Scenario::ending(Ending::Stall, [Step::text(0, "so far")]);
    let stage = play(wire, &[stalled]).await?;
    let mut answer = open(wire, &stage);
    read_text(&mut *answer, "so far").await?;
    answer.close();
    for _ in 0..2 {
        let closed = Err(StreamError::Closed);
        equal("next after closing", &answer.next().await, &closed)?;
    }
    let message = answer.message().during("message")?;
    equal("the text", message.text().as_str(), "so far")?;
    equal("its stop reason", &message.stop_reason, &StopReason::Aborted)
}

pub(super) async fn an_answer_that_is_closed_at_its_end_stays_whole(wire: &dyn Wire) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let mut answer = open(wire, &stage);
    read_text(&mut *answer, "one two three").await?;
    equal("next at the end", &answer.next().await, &Ok(None))?;
    let before = answer.message().during("message")?;
    answer.close();
    equal("next after closing", &answer.next().await, &Ok(None))?;
    let after = answer.message().during("message")?;
    equal("the message after closing", &after, &before)
}
