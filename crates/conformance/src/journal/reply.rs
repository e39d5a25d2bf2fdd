//! Answers to requests.

use antiphon_core::port::Expected;
use antiphon_core::{EventBody, Replied, ResponseStatus, TaskStatus};

use super::happening::{queued, replied};
use super::scribe::{Scribe, at, created, draft, status, task};
use crate::suite::{Outcome, equal};

pub(super) async fn a_request_has_its_first_final_answer(scribe: Scribe) -> Outcome {
    arrive(&scribe).await?;
    equal("an answer that nobody gave", &scribe.reply(1).await?, &None)?;
    let (first, other) = (failed(1, "first"), completed(2, "of another request"));
    scribe.write(draft(&task(1), at(3), vec![first.clone().into(), other.clone().into()])).await?;
    scribe.write(draft(&task(1), at(5), vec![completed(1, "second").into()])).await?;
    equal("the answer", &scribe.reply(1).await?, &Some(first))?;
    equal("the answer to the other", &scribe.reply(2).await?, &Some(other))?;
    equal("an answer to nothing", &scribe.reply(3).await?, &None)
}

pub(super) async fn an_answer_that_another_one_follows_does_not_count(scribe: Scribe) -> Outcome {
    arrive(&scribe).await?;
    let accepted = EventBody::from(replied(1, ResponseStatus::Accepted, "soon"));
    scribe.write(draft(&task(1), at(3), vec![accepted])).await?;
    equal("an answer before there is one", &scribe.reply(1).await?, &None)?;
    let last = completed(1, "done");
    scribe.write(draft(&task(1), at(4), vec![last.clone().into()])).await?;
    equal("the answer", &scribe.reply(1).await?, &Some(last))
}

/// Where nobody asked for it, and where nothing is done any more.
pub(super) async fn an_answer_is_found_wherever_it_was_written(scribe: Scribe) -> Outcome {
    arrive(&scribe).await?;
    scribe.create(&task(2)).await?;
    let elsewhere = completed(1, "elsewhere");
    scribe.write(draft(&task(2), at(1), vec![elsewhere.clone().into()])).await?;
    equal("an answer of another task", &scribe.reply(1).await?, &Some(elsewhere))?;

    let last = failed(2, "its last words");
    let end = vec![last.clone().into(), status(TaskStatus::Canceled)];
    scribe.write(draft(&task(1), at(3), end)).await?;
    equal("an answer of a task that has ended", &scribe.reply(2).await?, &Some(last))
}

/// Two requests arrive at the first task.
async fn arrive(scribe: &Scribe) -> Outcome {
    let events = vec![created(), queued(1).into(), queued(2).into()];
    scribe.write(draft(&task(1), Expected::NoTask, events)).await?;
    Ok(())
}

fn completed(request: u128, result: &str) -> Replied {
    replied(request, ResponseStatus::Completed, result)
}

fn failed(request: u128, result: &str) -> Replied {
    replied(request, ResponseStatus::Failed, result)
}
