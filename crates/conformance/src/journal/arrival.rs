//! Writers that have not seen the latest arrivals.

use antiphon_core::port::{Expected, JournalError};
use antiphon_core::{EventBody, HandlingMode, MessageQueued, Seq};

use super::all_events::specimens;
use super::sample_events::queued;
use super::test_journal::{TestJournal, at, behind, created, draft, note, task};
use crate::suite::{Outcome, equal};

pub(super) async fn arrivals_do_not_conflict_with_the_writer(journal: TestJournal) -> Outcome {
    for (n, believed) in (1..).zip(2..=5) {
        journal.create_up_to(&task(n), 2).await?;
        journal.write(draft(&task(n), at(2), of_each_kind())).await?;
        let appended = journal.write(draft(&task(n), behind(believed), vec![note(9)])).await?;
        equal("where it was written", &appended.seq, &Seq(6))?;
    }
    // Arrivals come together with other events, or with the creation of the task.
    let together = [vec![created()], arrivals()].concat();
    journal.write(draft(&task(9), Expected::NoTask, together)).await?;
    let more = [vec![note(1)], arrivals()].concat();
    journal.write(draft(&task(9), behind(1), more)).await?;
    let appended = journal.write(draft(&task(9), behind(5), vec![note(2)])).await?;
    equal("where it was written", &appended.seq, &Seq(9))
}

/// Every event but arrivals.
pub(super) async fn other_events_conflict_with_the_writer(journal: TestJournal) -> Outcome {
    let mut happened = specimens()?;
    happened.retain(|body| !is_arrival(body));
    for (n, body) in (1..).zip(happened.into_iter().skip(1)) {
        journal.create(&task(n)).await?;
        journal.write(draft(&task(n), at(1), arrivals())).await?;
        journal.write(draft(&task(n), behind(1), [vec![body], arrivals()].concat())).await?;
        for believed in [1, 4] {
            let late = draft(&task(n), behind(believed), vec![note(9)]);
            let stale = stale(n, believed, 8);
            equal("the refusal", &journal.refused(late).await?, &stale)?;
        }
        journal.write(draft(&task(n), behind(5), vec![note(9)])).await?;
    }
    Ok(())
}

pub(super) async fn a_writer_cannot_expect_a_future_event(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    journal.write(draft(&task(1), at(1), arrivals())).await?;
    for believed in [5, 100] {
        let ahead = draft(&task(1), behind(believed), vec![note(9)]);
        equal("the refusal", &journal.refused(ahead).await?, &stale(1, believed, 4))?;
    }
    let orphan = draft(&task(2), behind(3), vec![note(9)]);
    equal("the refusal", &journal.refused(orphan).await?, &stale(2, 3, 0))
}

pub(super) async fn a_task_exists_once_it_is_created(journal: TestJournal) -> Outcome {
    for events in [vec![note(1)], vec![created()]] {
        let orphan = draft(&task(1), Expected::Exists, events);
        equal("the refusal", &journal.refused(orphan).await?, &stale(1, 0, 0))?;
    }
    journal.create(&task(1)).await?;
    for (seq, body) in [(2, note(1)), (3, queued(1).into()), (4, note(2))] {
        let appended = journal.write(draft(&task(1), Expected::Exists, vec![body])).await?;
        equal("where it was written", &appended.seq, &Seq(seq))?;
    }
    Ok(())
}

fn arrivals() -> Vec<EventBody> {
    (1..=3).map(|n| queued(n).into()).collect()
}

/// One that may join at once, one that waits for the next turn, and a quiet one.
fn of_each_kind() -> Vec<EventBody> {
    vec![
        queued(1).into(),
        MessageQueued { mode: HandlingMode::Queue, ..queued(2) }.into(),
        MessageQueued { quiet: true, ..queued(3) }.into(),
    ]
}

/// Repeated here: the suite does not rely on the code under test.
fn is_arrival(body: &EventBody) -> bool {
    body.event_type() == "message_queued"
}

fn stale(n: u64, expected: u64, actual: u64) -> JournalError {
    JournalError::Stale { task_id: task(n), expected: Seq(expected), actual: Seq(actual) }
}
