//! Requests: how many are sent, when, and whether they end.

use antiphon_core::StreamEvent;
use tokio::sync::watch;

use super::reader::{open, play, read_text};
use super::states::{three_deltas, three_deltas_whole};
use super::transcript::Transcript;
use super::{Answer, Ending, Scenario, Stage, Step, StopWord, Traffic, Wire};
use crate::suite::{During, Finding, Outcome, equal, quote};

pub(super) async fn two_answers_at_once_do_not_mix(wire: &dyn Wire) -> Outcome {
    let words = |word: &str| -> Vec<String> { (0..20).map(|n| format!("{word}{n} ")).collect() };
    let text_of = |word: &str| {
        let deltas = words(word).into_iter().map(|delta| Step::text(0, delta));
        let end = [Step::BlockEnd { block: 0 }, Step::Stop(StopWord::EndTurn)];
        Scenario::whole(deltas.chain(end))
    };
    let stage = play(wire, &[text_of("a"), text_of("b")]).await?;
    let (mut a, mut b) = (open(wire, &stage), open(wire, &stage));
    let (mut a_text, mut b_text) = (String::new(), String::new());
    // The first request is sent before the second begins.
    a_text.push_str(&text(&mut *a).await?.unwrap_or_default());
    loop {
        let (more_of_a, more_of_b) = (text(&mut *a).await?, text(&mut *b).await?);
        if more_of_a.is_none() && more_of_b.is_none() {
            break;
        }
        a_text.push_str(&more_of_a.unwrap_or_default());
        b_text.push_str(&more_of_b.unwrap_or_default());
    }
    equal("the first answer", &a_text, &words("a").concat())?;
    equal("the second answer", &b_text, &words("b").concat())
}

pub(super) async fn nothing_is_sent_before_the_first_next(wire: &dyn Wire) -> Outcome {
    let stage = play(wire, &[Scenario::whole(three_deltas_whole())]).await?;
    let mut traffic = watched(&stage)?;
    let mut answer = open(wire, &stage);
    tokio::task::yield_now().await;
    equal("requests sent", &traffic.borrow_and_update().begun, &0)?;
    read_text(&mut *answer, "one two three").await?;
    equal("requests sent by then", &traffic.borrow_and_update().begun, &1)
}

/// A provider does not retry: only the caller knows the cost.
pub(super) async fn an_answer_is_one_request(wire: &dyn Wire) -> Outcome {
    let cut = Scenario::ending(Ending::Cut, three_deltas());
    let stage = play(wire, &[cut.clone(), cut]).await?;
    let traffic = watched(&stage)?;
    let mut answer = open(wire, &stage);
    Transcript::read(&mut *answer).await;
    equal("requests sent", &traffic.borrow().begun, &1)
}

pub(super) async fn dropping_an_answer_ends_its_request(wire: &dyn Wire) -> Outcome {
    let (stage, answer) = stalled(wire).await?;
    drop(answer);
    ended(&stage).await
}

pub(super) async fn closing_an_answer_ends_its_request(wire: &dyn Wire) -> Outcome {
    let (stage, mut answer) = stalled(wire).await?;
    answer.close();
    ended(&stage).await?;
    drop(answer);
    Ok(())
}

/// An answer that stalls in the middle.
async fn stalled(wire: &dyn Wire) -> Result<(Stage, Box<dyn Answer>), Finding> {
    let stage = play(wire, &[Scenario::ending(Ending::Stall, three_deltas())]).await?;
    let mut traffic = watched(&stage)?;
    let mut answer = open(wire, &stage);
    read_text(&mut *answer, "one two three").await?;
    let open = traffic.wait_for(|traffic| traffic.open == 1).await;
    open.during("the other end")?;
    Ok((stage, answer))
}

async fn ended(stage: &Stage) -> Outcome {
    let mut traffic = watched(stage)?;
    let ended = traffic.wait_for(|traffic| traffic.open == 0).await;
    ended.during("the other end")?;
    Ok(())
}

fn watched(stage: &Stage) -> Result<watch::Receiver<Traffic>, Finding> {
    let traffic = stage.traffic.clone();
    traffic.ok_or_else(|| Finding::Skipped("its requests cannot be seen".to_owned()))
}

async fn text(answer: &mut dyn Answer) -> Result<Option<String>, Finding> {
    match answer.next().await.during("next")? {
        None => Ok(None),
        Some(StreamEvent::TextDelta { delta }) => Ok(Some(delta)),
        other => {
            Err(Finding::Broken(format!("there should be text, but there is {}", quote(&other))))
        }
    }
}
