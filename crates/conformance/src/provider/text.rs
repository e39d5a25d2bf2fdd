//! Text and thinking, of any kind and length.

use antiphon_core::{AssistantBlock, Signature, ThinkingBlock};

use super::reader::read_whole;
use super::{Step, StopWord, Wire};
use crate::suite::{Outcome, ensure, equal};

/// Characters that framing, escaping and decoding may get wrong.
const ODD_TEXT: [&str; 6] = [
    "data: [DONE]\n\n",
    "\r\nevent: error\r\n: comment\r\n",
    "\u{0}\u{1}\u{7f}\u{2028}\u{2029}\u{feff}",
    "é e\u{301} \u{1F469}\u{200D}\u{1F680} 漢字 \u{10FFFF}",
    "\\n \\u0041 \" ' < > & </script>",
    " ",
];

const MEGABYTE: usize = 1024 * 1024;
const DELTAS: usize = 20_000;

pub(super) async fn odd_text_survives(wire: &dyn Wire) -> Outcome {
    let steps = ODD_TEXT.map(|delta| Step::text(0, delta));
    text_survives(wire, steps.to_vec(), &ODD_TEXT.concat()).await
}

pub(super) async fn a_delta_of_a_megabyte_survives(wire: &dyn Wire) -> Outcome {
    let long = "0123456789abcdef".repeat(MEGABYTE / 16);
    text_survives(wire, vec![Step::text(0, long.as_str())], &long).await
}

pub(super) async fn twenty_thousand_deltas_survive(wire: &dyn Wire) -> Outcome {
    let deltas: Vec<String> = (0..DELTAS).map(|n| format!("{n} ")).collect();
    let steps = deltas.iter().map(|delta| Step::text(0, delta.as_str()));
    text_survives(wire, steps.collect(), &deltas.concat()).await
}

pub(super) async fn thinking_is_kept_apart_from_text(wire: &dyn Wire) -> Outcome {
    let steps = thinking_steps(None);
    let (transcript, message) = read_whole(wire, steps).await?;
    equal("the thinking that was read", transcript.thinking.as_str(), "hm, well")?;
    equal("the text that was read", transcript.text.as_str(), "so")?;
    let [AssistantBlock::Thinking(thinking), AssistantBlock::Text(text)] = &message.content[..]
    else {
        return equal("the message", &message.content, &vec![]);
    };
    equal("the thinking", thinking.thinking.as_str(), "hm, well")?;
    equal("the text", text.text.as_str(), "so")
}

pub(super) async fn a_signature_is_kept(wire: &dyn Wire) -> Outcome {
    let signature = "EqQBCgIYAhIM+/aB==";
    let steps = thinking_steps(Some(signature));
    let (_, message) = read_whole(wire, steps).await?;
    let thinking = AssistantBlock::Thinking(ThinkingBlock {
        thinking: "hm, well".to_owned(),
        signature: Some(Signature(signature.to_owned())),
    });
    ensure!(
        message.content.first() == Some(&thinking),
        "the signed thinking is not there: {:?}",
        message.content
    );
    Ok(())
}

pub(super) async fn keep_alives_are_not_seen(wire: &dyn Wire) -> Outcome {
    let steps = [
        Step::Alive,
        Step::text(0, "one "),
        Step::Alive,
        Step::Alive,
        Step::text(0, "two"),
        Step::Alive,
    ];
    text_survives(wire, steps.to_vec(), "one two").await
}

fn thinking_steps(signature: Option<&str>) -> Vec<Step> {
    let thinking = |delta: &str| Step::Thinking { block: 0, delta: delta.to_owned() };
    let mut steps = vec![thinking("hm, "), thinking("well")];
    steps.extend(
        signature.map(|signature| Step::Signature { block: 0, signature: signature.to_owned() }),
    );
    steps.extend([
        Step::BlockEnd { block: 0 },
        Step::text(1, "so"),
        Step::BlockEnd { block: 1 },
        Step::Stop(StopWord::EndTurn),
    ]);
    steps
}

async fn text_survives(wire: &dyn Wire, mut steps: Vec<Step>, text: &str) -> Outcome {
    steps.push(Step::BlockEnd { block: 0 });
    steps.push(Step::Stop(StopWord::EndTurn));
    let (transcript, message) = read_whole(wire, steps).await?;
    equal("the text that was read", transcript.text.as_str(), text)?;
    equal("the message", message.text().as_str(), text)
}
