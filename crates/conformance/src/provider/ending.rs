//! The end of an answer: stop reason, tokens, model.

use antiphon_core::{StopReason, Usage};

use super::reader::{read_failing, read_whole};
use super::states::three_deltas_whole;
use super::{Ending, Step, StopWord, Wire};
use crate::suite::{Finding, Outcome, ensure, equal};

const USAGE: Usage = Usage {
    input_tokens: 1234,
    output_tokens: 56,
    cache_read_tokens: None,
    cache_write_tokens: None,
};

pub(super) async fn stop_reasons_are_distinguished(wire: &dyn Wire) -> Outcome {
    let text = vec![Step::text(0, "so"), Step::BlockEnd { block: 0 }];
    let call = Step::call(0, "call_1", "look", "{}");
    for (steps, word, reason) in [
        (text.clone(), StopWord::EndTurn, StopReason::EndTurn),
        (text, StopWord::Length, StopReason::Length),
        (call, StopWord::ToolUse, StopReason::ToolUse),
    ] {
        let steps = steps.into_iter().chain([Step::Stop(word)]);
        let (_, message) = read_whole(wire, steps).await?;
        equal("the stop reason", &message.stop_reason, &reason)?;
        ensure!(
            !message.raw_stop_reason.is_empty(),
            "the provider's own word for {word:?} is lost"
        );
    }
    Ok(())
}

pub(super) async fn an_unknown_stop_word_is_kept(wire: &dyn Wire) -> Outcome {
    let steps = [Step::text(0, "so"), Step::BlockEnd { block: 0 }, Step::Stop(StopWord::Unheard)];
    let (_, message) = read_whole(wire, steps).await?;
    equal("the stop reason", &message.stop_reason, &StopReason::Unknown)?;
    ensure!(!message.raw_stop_reason.is_empty(), "the word is lost");
    Ok(())
}

pub(super) async fn usage_is_counted(wire: &dyn Wire) -> Outcome {
    let found = counted(wire, USAGE).await?;
    equal("tokens read", &found.input_tokens, &USAGE.input_tokens)?;
    equal("tokens written", &found.output_tokens, &USAGE.output_tokens)
}

pub(super) async fn tokens_read_from_a_cache_are_counted(wire: &dyn Wire) -> Outcome {
    let usage = Usage { cache_read_tokens: Some(3000), ..USAGE };
    let found = counted(wire, usage).await?;
    equal("tokens read from a cache", &found.cache_read_tokens, &Some(3000))?;
    equal("other tokens read", &found.input_tokens, &USAGE.input_tokens)
}

pub(super) async fn tokens_written_to_a_cache_are_counted(wire: &dyn Wire) -> Outcome {
    let usage = Usage { cache_write_tokens: Some(200), ..USAGE };
    let found = counted(wire, usage).await?;
    equal("tokens written to a cache", &found.cache_write_tokens, &Some(200))?;
    equal("other tokens read", &found.input_tokens, &USAGE.input_tokens)
}

pub(super) async fn the_usage_of_an_interrupted_answer_is_kept(wire: &dyn Wire) -> Outcome {
    let steps = [Step::Usage(USAGE), Step::text(0, "so far")];
    let (_, message) = read_failing(wire, Ending::Cut, steps).await?;
    equal("tokens read", &message.usage.input_tokens, &USAGE.input_tokens)
}

pub(super) async fn an_answer_says_who_wrote_it(wire: &dyn Wire) -> Outcome {
    let (_, message) = read_whole(wire, three_deltas_whole()).await?;
    ensure!(
        message.model.is_some(),
        "the message names no model, so its signatures can go back to none"
    );
    Ok(())
}

async fn counted(wire: &dyn Wire, usage: Usage) -> Result<Usage, Finding> {
    let mut steps = three_deltas_whole();
    steps.push(Step::Usage(usage));
    let (_, message) = read_whole(wire, steps).await?;
    Ok(message.usage)
}
