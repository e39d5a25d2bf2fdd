//! Messages that wait for their turn.

use antiphon_core::port::Append;
use antiphon_core::{
    InteractionId, MessageQueued, Position, Queued, ResponseStatus, TaskId, TaskStatus,
};
use chrono::TimeDelta;

use super::happening::{interaction_id, queued, replied, taken};
use super::scribe::{Scribe, at, draft, noon, note, status, task};
use crate::suite::{Finding, Outcome, equal};

pub(super) async fn a_message_waits_until_it_has_its_turn(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    let arrived = noon() + TimeDelta::microseconds(7);
    let arrive = draft(&task(1), at(1), vec![queued(1).into()]);
    scribe.write(Append { at: arrived, ..arrive }).await?;
    scribe.write(draft(&task(1), at(2), vec![note(1)])).await?;
    let (task_id, position) = (task(1), Position(2));
    let expected = Queued { task_id, position, at: arrived, message: queued(1) };
    equal("what waits", &scribe.queued(10).await?, &vec![expected])?;
    scribe.write(draft(&task(1), at(3), vec![taken(1)])).await?;
    equal("what waits after its turn", &scribe.queued(10).await?, &vec![])
}

pub(super) async fn messages_wait_in_the_order_of_their_arrival(scribe: Scribe) -> Outcome {
    for number in 1..=2 {
        scribe.create(&task(number)).await?;
    }
    for (number, seq, message) in [(2, 1, 3), (1, 1, 1), (2, 2, 2), (1, 2, 4)] {
        let arrive = vec![queued(message).into()];
        scribe.write(draft(&task(number), at(seq), arrive)).await?;
    }
    let expected = [(2, 3), (1, 1), (2, 2), (1, 4)];
    equal("what waits", &listed(&scribe).await?, &places(&expected))
}

/// The same message may wait for two tasks, and for each of them once.
pub(super) async fn a_message_waits_once_in_each_task(scribe: Scribe) -> Outcome {
    for number in 1..=2 {
        scribe.create(&task(number)).await?;
    }
    for (number, seq) in [(1, 1), (2, 1), (1, 2)] {
        scribe.write(draft(&task(number), at(seq), vec![queued(1).into()])).await?;
    }
    equal("what waits", &listed(&scribe).await?, &places(&[(1, 1), (2, 1)]))?;
    scribe.write(draft(&task(1), at(3), vec![taken(1)])).await?;
    equal("what waits", &listed(&scribe).await?, &places(&[(2, 1)]))
}

pub(super) async fn nothing_waits_in_a_task_that_has_ended(scribe: Scribe) -> Outcome {
    for number in 1..=2 {
        scribe.create(&task(number)).await?;
        let arrive = vec![queued(number.into()).into()];
        scribe.write(draft(&task(number), at(1), arrive)).await?;
    }
    scribe.write(draft(&task(1), at(2), vec![status(TaskStatus::Completed)])).await?;
    equal("what waits", &listed(&scribe).await?, &places(&[(2, 2)]))
}

/// In its own task: the same message may wait elsewhere.
pub(super) async fn what_is_replaced_does_not_wait_any_more(scribe: Scribe) -> Outcome {
    for number in 1..=2 {
        scribe.create(&task(number)).await?;
        let arrive = vec![queued(1).into(), queued(2).into()];
        scribe.write(draft(&task(number), at(1), arrive)).await?;
    }
    let newer =
        |n, replaces| MessageQueued { replaces: Some(interaction_id(replaces)), ..queued(n) };
    scribe.write(draft(&task(2), at(3), vec![newer(3, 1).into(), newer(4, 99).into()])).await?;
    let expected = [(1, 1), (1, 2), (2, 2), (2, 3), (2, 4)];
    equal("what waits", &listed(&scribe).await?, &places(&expected))?;
    scribe.write(draft(&task(2), at(5), vec![newer(5, 3).into()])).await?;
    let expected = [(1, 1), (1, 2), (2, 2), (2, 4), (2, 5)];
    equal("what waits", &listed(&scribe).await?, &places(&expected))
}

pub(super) async fn a_request_waits_until_its_task_answers_it(scribe: Scribe) -> Outcome {
    for number in 1..=2 {
        scribe.create(&task(number)).await?;
        let arrive = vec![queued(1).into(), queued(2).into(), queued(3).into()];
        scribe.write(draft(&task(number), at(1), arrive)).await?;
    }
    let statuses = [ResponseStatus::Accepted, ResponseStatus::Completed, ResponseStatus::Failed];
    let answers = (1..).zip(statuses).map(|(n, status)| replied(n, status, "so").into());
    scribe.write(draft(&task(1), at(4), answers.collect())).await?;
    let expected = [(2, 1), (2, 2), (2, 3)];
    equal("what waits", &listed(&scribe).await?, &places(&expected))
}

async fn listed(scribe: &Scribe) -> Result<Vec<(TaskId, InteractionId)>, Finding> {
    let waiting = scribe.queued(10).await?;
    Ok(waiting.into_iter().map(|queued| (queued.task_id, queued.message.id)).collect())
}

fn places(expected: &[(u64, u128)]) -> Vec<(TaskId, InteractionId)> {
    expected.iter().map(|(number, n)| (task(*number), interaction_id(*n))).collect()
}
