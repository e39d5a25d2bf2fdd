//! Writers who need not have seen what came in.

use antiphon_core::port::{Expected, JournalError};
use antiphon_core::{EventBody, HandlingMode, MessageQueued, Seq};

use super::happening::queued;
use super::scribe::{Scribe, at, behind, created, draft, note, task};
use super::specimen::specimens;
use crate::suite::{Outcome, equal};

pub(super) async fn arrivals_are_in_nobodys_way(scribe: Scribe) -> Outcome {
    for (n, believed) in (1..).zip(2..=5) {
        scribe.create_up_to(&task(n), 2).await?;
        scribe.write(draft(&task(n), at(2), of_each_kind())).await?;
        let appended = scribe.write(draft(&task(n), behind(believed), vec![note(9)])).await?;
        equal("where it was written", &appended.seq, &Seq(6))?;
    }
    // They arrive together with something else, or with the task itself.
    let together = [vec![created()], arrivals()].concat();
    scribe.write(draft(&task(9), Expected::NoTask, together)).await?;
    let more = [vec![note(1)], arrivals()].concat();
    scribe.write(draft(&task(9), behind(1), more)).await?;
    let appended = scribe.write(draft(&task(9), behind(5), vec![note(2)])).await?;
    equal("where it was written", &appended.seq, &Seq(9))
}

/// Whatever has happened, but for what arrives.
pub(super) async fn what_is_more_than_an_arrival_is_in_the_way(scribe: Scribe) -> Outcome {
    let mut happened = specimens()?;
    happened.retain(|body| !is_arrival(body));
    for (n, body) in (1..).zip(happened.into_iter().skip(1)) {
        scribe.create(&task(n)).await?;
        scribe.write(draft(&task(n), at(1), arrivals())).await?;
        scribe.write(draft(&task(n), behind(1), [vec![body], arrivals()].concat())).await?;
        for believed in [1, 4] {
            let late = draft(&task(n), behind(believed), vec![note(9)]);
            let stale = stale(n, believed, 8);
            equal("the refusal", &scribe.refused(late).await?, &stale)?;
        }
        scribe.write(draft(&task(n), behind(5), vec![note(9)])).await?;
    }
    Ok(())
}

pub(super) async fn nobody_writes_behind_what_is_not_there_yet(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    scribe.write(draft(&task(1), at(1), arrivals())).await?;
    for believed in [5, 100] {
        let ahead = draft(&task(1), behind(believed), vec![note(9)]);
        equal("the refusal", &scribe.refused(ahead).await?, &stale(1, believed, 4))?;
    }
    let orphan = draft(&task(2), behind(3), vec![note(9)]);
    equal("the refusal", &scribe.refused(orphan).await?, &stale(2, 3, 0))
}

pub(super) async fn a_task_is_there_once_it_is_created(scribe: Scribe) -> Outcome {
    for events in [vec![note(1)], vec![created()]] {
        let orphan = draft(&task(1), Expected::Exists, events);
        equal("the refusal", &scribe.refused(orphan).await?, &stale(1, 0, 0))?;
    }
    scribe.create(&task(1)).await?;
    for (seq, body) in [(2, note(1)), (3, queued(1).into()), (4, note(2))] {
        let appended = scribe.write(draft(&task(1), Expected::Exists, vec![body])).await?;
        equal("where it was written", &appended.seq, &Seq(seq))?;
    }
    Ok(())
}

fn arrivals() -> Vec<EventBody> {
    (1..=3).map(|n| queued(n).into()).collect()
}

/// One that may join at once, one that waits for the next turn, and one that nobody wakes up for.
fn of_each_kind() -> Vec<EventBody> {
    vec![
        queued(1).into(),
        MessageQueued { mode: HandlingMode::Queue, ..queued(2) }.into(),
        MessageQueued { quiet: true, ..queued(3) }.into(),
    ]
}

/// Said once more here: the suite does not ask whom it checks.
fn is_arrival(body: &EventBody) -> bool {
    body.event_type() == "message_queued"
}

fn stale(n: u64, expected: u64, actual: u64) -> JournalError {
    JournalError::Stale { task_id: task(n), expected: Seq(expected), actual: Seq(actual) }
}
