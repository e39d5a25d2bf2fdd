//! Faults of appends that ignore arrivals.

use antiphon_core::port::{Append, Appended, Expected, JournalError, JournalLog};
use antiphon_core::{Event, EventBody, Seq};
use tokio::task::yield_now;

use super::{Fault, FaultyJournal};

type Answer = Result<Appended, JournalError>;

#[expect(clippy::wildcard_enum_match_arm, reason = "a fault is wrong in one respect")]
impl FaultyJournal {
    pub(super) async fn writing_behind_wrongly(&self, mut append: Append) -> Answer {
        let Expected::AtOrArrivals(seq) = append.expected else {
            return self.inner.append(append).await;
        };
        let events = self.events(Some(&append.task_id)).await;
        let actual = Seq(events.len() as u64);
        let there = seq <= actual;
        let since: Vec<&Event> = events.iter().filter(|event| event.seq > seq).collect();
        let lets_in = match self.fault {
            Fault::WritesBehindAnything => there,
            Fault::WritesBehindWhatIsToCome => actual > Seq(0) && !there,
            Fault::LooksAtTheLastEventOnly => {
                there && events.last().is_some_and(|event| event.body.is_arrival())
            }
            Fault::LooksForArrivalsTooEarly => {
                there && since.iter().all(|event| event.body.is_arrival())
            }
            _ => false,
        };
        if self.fault == Fault::LetsQuietArrivalsGetInTheWay && since.iter().any(|e| is_quiet(e)) {
            let task_id = append.task_id;
            return Err(JournalError::Stale { task_id, expected: seq, actual });
        }
        if self.fault == Fault::LooksForArrivalsTooEarly {
            // Once is not enough: the last task to yield continues first.
            yield_now().await;
            yield_now().await;
        }
        if lets_in {
            append.expected = Expected::At(actual);
        }
        self.inner.append(append).await
    }

    pub(super) async fn writing_there_wrongly(&self, mut append: Append) -> Answer {
        if append.expected != Expected::Exists {
            return self.inner.append(append).await;
        }
        let actual = self.seq(&append.task_id).await;
        if self.fault == Fault::CreatesWhatShouldBeThere && actual == Seq(0) {
            append.expected = Expected::NoTask;
        }
        if self.fault == Fault::LooksForTheTaskTooEarly && actual > Seq(0) {
            yield_now().await;
            append.expected = Expected::At(actual);
        }
        match self.inner.append(append).await {
            Err(JournalError::Ended { task_id }) if self.fault == Fault::FindsEndedTasksThere => {
                Ok(self.pretended(&task_id).await)
            }
            answer => answer,
        }
    }
}

fn is_quiet(event: &Event) -> bool {
    matches!(&event.body, EventBody::MessageQueued(queued) if queued.quiet)
}
