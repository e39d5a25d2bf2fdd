//! Answers to requests.

use antiphon_core::port::Expected;
use antiphon_core::{EventBody, Replied, ResponseStatus, TaskStatus};

use super::sample_events::{queued, replied};
use super::test_journal::{TestJournal, at, created, draft, status, task};
use crate::suite::{Outcome, equal};

pub(super) async fn a_request_has_its_first_final_answer(journal: TestJournal) -> Outcome {
    arrive(&journal).await?;
    equal("an answer that was not given", &journal.reply(1).await?, &None)?;
    let (first, other) = (failed(1, "first"), completed(2, "of another request"));
    journal.write(draft(&task(1), at(3), vec![first.clone().into(), other.clone().into()])).await?;
    journal.write(draft(&task(1), at(5), vec![completed(1, "second").into()])).await?;
    equal("the answer", &journal.reply(1).await?, &Some(first))?;
    equal("the answer to the other", &journal.reply(2).await?, &Some(other))?;
    equal("an answer to nothing", &journal.reply(3).await?, &None)
}

pub(super) async fn an_accepted_answer_is_not_final(journal: TestJournal) -> Outcome {
    arrive(&journal).await?;
    let accepted = EventBody::from(replied(1, ResponseStatus::Accepted, "soon"));
    journal.write(draft(&task(1), at(3), vec![accepted])).await?;
    equal("an answer before there is one", &journal.reply(1).await?, &None)?;
    let last = completed(1, "done");
    journal.write(draft(&task(1), at(4), vec![last.clone().into()])).await?;
    equal("the answer", &journal.reply(1).await?, &Some(last))
}

/// In a task without that request, and in a task that has ended.
pub(super) async fn an_answer_is_found_in_any_task(journal: TestJournal) -> Outcome {
    arrive(&journal).await?;
    journal.create(&task(2)).await?;
    let elsewhere = completed(1, "elsewhere");
    journal.write(draft(&task(2), at(1), vec![elsewhere.clone().into()])).await?;
    equal("an answer of another task", &journal.reply(1).await?, &Some(elsewhere))?;

    let last = failed(2, "its last words");
    let end = vec![last.clone().into(), status(TaskStatus::Canceled)];
    journal.write(draft(&task(1), at(3), end)).await?;
    equal("an answer of a task that has ended", &journal.reply(2).await?, &Some(last))
}

/// Two requests arrive at the first task.
async fn arrive(journal: &TestJournal) -> Outcome {
    let events = vec![created(), queued(1).into(), queued(2).into()];
    journal.write(draft(&task(1), Expected::NoTask, events)).await?;
    Ok(())
}

fn completed(request: u128, result: &str) -> Replied {
    replied(request, ResponseStatus::Completed, result)
}

fn failed(request: u128, result: &str) -> Replied {
    replied(request, ResponseStatus::Failed, result)
}
