//! Queued messages.

use antiphon_core::port::Append;
use antiphon_core::{
    InteractionId, MessageQueued, Position, QueuedMessage, ResponseStatus, TaskId, TaskStatus,
};
use chrono::TimeDelta;

use super::sample_events::{interaction_id, queued, replied, taken};
use super::test_journal::{TestJournal, at, draft, noon, note, status, task};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn a_message_is_queued_until_it_joins_the_conversation(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    let arrived = noon() + TimeDelta::microseconds(7);
    let arrive = draft(&task(1), at(1), vec![queued(1).into()]);
    journal.write(Append { at: arrived, ..arrive }).await?;
    journal.write(draft(&task(1), at(2), vec![note(1)])).await?;
    let (task_id, position) = (task(1), Position(2));
    let expected = QueuedMessage { task_id, position, at: arrived, message: queued(1) };
    equal("what waits", &journal.queued(10).await?, &vec![expected])?;
    journal.write(draft(&task(1), at(3), vec![taken(1)])).await?;
    equal("what waits after its turn", &journal.queued(10).await?, &vec![])
}

pub(super) async fn messages_are_queued_in_the_order_of_arrival(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
    }
    for (number, seq, message) in [(2, 1, 3), (1, 1, 1), (2, 2, 2), (1, 2, 4)] {
        let arrive = vec![queued(message).into()];
        journal.write(draft(&task(number), at(seq), arrive)).await?;
    }
    let expected = [(2, 3), (1, 1), (2, 2), (1, 4)];
    equal("what waits", &listed(&journal).await?, &places(&expected))
}

/// The same message may be queued in two tasks, once in each.
pub(super) async fn a_message_is_queued_once_in_each_task(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
    }
    for (number, seq) in [(1, 1), (2, 1), (1, 2)] {
        journal.write(draft(&task(number), at(seq), vec![queued(1).into()])).await?;
    }
    equal("what waits", &listed(&journal).await?, &places(&[(1, 1), (2, 1)]))?;
    journal.write(draft(&task(1), at(3), vec![taken(1)])).await?;
    equal("what waits", &listed(&journal).await?, &places(&[(2, 1)]))
}

pub(super) async fn nothing_is_queued_in_a_task_that_has_ended(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
        let arrive = vec![queued(number.into()).into()];
        journal.write(draft(&task(number), at(1), arrive)).await?;
    }
    journal.write(draft(&task(1), at(2), vec![status(TaskStatus::Completed)])).await?;
    equal("what waits", &listed(&journal).await?, &places(&[(2, 2)]))
}

/// Only in its own task: the same message may be queued in another.
pub(super) async fn a_replaced_message_leaves_the_inbox(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
        let arrive = vec![queued(1).into(), queued(2).into()];
        journal.write(draft(&task(number), at(1), arrive)).await?;
    }
    let newer =
        |n, replaces| MessageQueued { replaces: Some(interaction_id(replaces)), ..queued(n) };
    journal.write(draft(&task(2), at(3), vec![newer(3, 1).into(), newer(4, 99).into()])).await?;
    let expected = [(1, 1), (1, 2), (2, 2), (2, 3), (2, 4)];
    equal("what waits", &listed(&journal).await?, &places(&expected))?;
    journal.write(draft(&task(2), at(5), vec![newer(5, 3).into()])).await?;
    let expected = [(1, 1), (1, 2), (2, 2), (2, 4), (2, 5)];
    equal("what waits", &listed(&journal).await?, &places(&expected))
}

pub(super) async fn a_request_is_queued_until_its_task_answers_it(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
        let arrive = vec![queued(1).into(), queued(2).into(), queued(3).into()];
        journal.write(draft(&task(number), at(1), arrive)).await?;
    }
    let statuses = [ResponseStatus::Accepted, ResponseStatus::Completed, ResponseStatus::Failed];
    let answers = (1..).zip(statuses).map(|(n, status)| replied(n, status, "so").into());
    journal.write(draft(&task(1), at(4), answers.collect())).await?;
    let expected = [(2, 1), (2, 2), (2, 3)];
    equal("what waits", &listed(&journal).await?, &places(&expected))
}

async fn listed(journal: &TestJournal) -> Result<Vec<(TaskId, InteractionId)>, Finding> {
    let waiting = journal.queued(10).await?;
    Ok(waiting.into_iter().map(|queued| (queued.task_id, queued.message.id)).collect())
}

fn places(expected: &[(u64, u128)]) -> Vec<(TaskId, InteractionId)> {
    expected.iter().map(|(number, n)| (task(*number), interaction_id(*n))).collect()
}
