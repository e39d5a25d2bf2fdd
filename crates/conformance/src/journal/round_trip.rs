//! What is read is what was written, value for value.

use antiphon_core::port::{Append, Expected};
use antiphon_core::{Event, EventBody, Position, Seq};
use chrono::{DateTime, Utc};

use super::all_events::specimens;
use super::test_journal::{TestJournal, at, draft, noon, note, task};
use crate::suite::{Outcome, ensure, equal};

pub(super) async fn events_come_back_as_they_were_written(journal: TestJournal) -> Outcome {
    let bodies = specimens()?;
    for missing in EventBody::TYPES {
        ensure!(
            bodies.iter().any(|body| body.event_type() == *missing),
            "this suite has no specimen of `{missing}`"
        );
    }
    for (seq, body) in (0..).zip(&bodies) {
        let expected = match seq {
            0 => Expected::NoTask,
            seq => at(seq),
        };
        journal.write(draft(&task(1), expected, vec![body.clone()])).await?;
    }
    let found = journal.read(Some(&task(1)), Position(0), 100).await?.events;
    for (seq, (found, body)) in (1..).zip(found.iter().zip(&bodies)) {
        let expected = Event {
            position: Position(seq),
            task_id: task(1),
            seq: Seq(seq),
            at: noon(),
            body: body.clone(),
        };
        equal("an event", found, &expected)?;
    }
    equal("events read", &found.len(), &bodies.len())
}

pub(super) async fn times_come_back_to_the_nanosecond(journal: TestJournal) -> Outcome {
    let times: Vec<DateTime<Utc>> = [(0, 0), (1_771_416_000, 123_456_789), (-1, 999_999_999)]
        .into_iter()
        .filter_map(|(seconds, nanos)| DateTime::from_timestamp(seconds, nanos))
        .collect();
    journal.create(&task(1)).await?;
    for (seq, time) in (1..).zip(&times) {
        let append = Append { at: *time, ..draft(&task(1), at(seq), vec![note(seq)]) };
        journal.write(append).await?;
    }
    let found: Vec<_> = journal.all().await?.iter().map(|event| event.at).collect();
    let expected: Vec<_> = [noon()].into_iter().chain(times).collect();
    equal("the times", &found, &expected)
}
