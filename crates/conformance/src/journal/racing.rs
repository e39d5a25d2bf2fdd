//! Many writers at once, and a reader meanwhile.

use std::collections::HashMap;

use antiphon_core::port::{Appended, Expected, JournalError};
use antiphon_core::{Event, EventBody, Position, Seq, TaskId};
use tokio::task::JoinSet;

use super::sample_events::queued;
use super::test_journal::{TestJournal, at, behind, created, draft, note, task};
use crate::suite::{During, Finding, Outcome, ensure, equal};

const RIVALS: u64 = 64;
const ROUNDS: u64 = 4;
const TASKS: u64 = 16;
const APPENDS: u64 = 8;
const BRINGERS: u64 = 8;

/// Position and content of an event.
type Written = (Appended, EventBody);

pub(super) async fn one_of_many_writers_wins_each_seq(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    for round in 1..=ROUNDS {
        let mut rivals = JoinSet::new();
        for n in 0..RIVALS {
            let journal = journal.clone();
            let append = draft(&task(1), at(round), vec![note(n)]);
            rivals.spawn(async move { journal.append(append).await });
        }
        let mut winners = Vec::new();
        while let Some(answer) = rivals.join_next().await {
            match answer.during("a writer")? {
                Ok(appended) => winners.push(appended.seq),
                Err(JournalError::Stale { .. }) => {}
                Err(error) => {
                    return Err(Finding::Broken(format!("a writer who lost: {error}")));
                }
            }
        }
        equal("the seqs that were won", &winners, &vec![Seq(round + 1)])?;
    }
    let written = journal.all().await?.len() as u64;
    equal("events written", &written, &(1 + ROUNDS))
}

pub(super) async fn writers_on_many_tasks_leave_no_gap(journal: TestJournal) -> Outcome {
    let mut writers = write_many(&journal);
    let mut answers = Vec::new();
    while let Some(answer) = writers.join_next().await {
        answers.extend(answer.during("a writer")??);
    }
    let all = journal.all().await?;
    equal("events written", &(all.len() as u64), &events_in_all())?;
    let mut seqs: HashMap<&TaskId, u64> = HashMap::new();
    for (position, event) in (1..).zip(&all) {
        let seq = seqs.entry(&event.task_id).or_default();
        *seq += 1;
        equal("a position", &event.position, &Position(position))?;
        equal("a seq", &event.seq, &Seq(*seq))?;
    }
    let places: HashMap<Position, &Event> =
        all.iter().map(|event| (event.position, event)).collect();
    for answer in answers {
        let event = places.get(&answer.position);
        ensure!(
            event.is_some_and(|event| event.task_id == answer.task_id && event.seq == answer.seq),
            "a writer got {answer:?}, but the event is {event:?}"
        );
    }
    Ok(())
}

/// Many clients send messages to a task while it runs: no writer has to retry.
pub(super) async fn arrivals_and_the_writer_do_not_conflict(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let mut writers: JoinSet<Result<Vec<Written>, Finding>> = JoinSet::new();
    for n in 0..BRINGERS {
        let journal = journal.clone();
        writers.spawn(async move {
            let mut written = Vec::new();
            for turn in 0..APPENDS {
                let body = EventBody::from(queued((n * APPENDS + turn).into()));
                let bring = draft(&task(1), Expected::Exists, vec![body.clone()]);
                written.push((journal.write(bring).await?, body));
                tokio::task::yield_now().await;
            }
            Ok(written)
        });
    }
    let worker = journal.clone();
    writers.spawn(async move {
        let mut written = Vec::new();
        let mut last = 1;
        for turn in 0..APPENDS {
            let work = draft(&task(1), behind(last), vec![note(turn)]);
            let appended = worker.write(work).await?;
            last = appended.seq.0;
            written.push((appended, note(turn)));
            tokio::task::yield_now().await;
        }
        Ok(written)
    });
    let mut written = Vec::new();
    while let Some(answer) = writers.join_next().await {
        written.extend(answer.during("a writer")??);
    }
    written.sort_by_key(|(appended, _)| appended.seq);
    let found: Vec<_> = journal.of(&task(1)).await?.into_iter().skip(1).map(|e| e.body).collect();
    let seqs: Vec<_> = written.iter().map(|(appended, _)| appended.seq.0).collect();
    equal("the seqs that were given", &seqs, &(2..=1 + (BRINGERS + 1) * APPENDS).collect())?;
    let bodies: Vec<_> = written.into_iter().map(|(_, body)| body).collect();
    equal("what was written", &found, &bodies)
}

/// What a reader has passed does not change: nothing appears before its position.
pub(super) async fn a_follower_misses_nothing_while_others_write(journal: TestJournal) -> Outcome {
    let mut writers = write_many(&journal);
    let mut seen = 0;
    while seen < events_in_all() {
        let page = journal.read(None, Position(seen), 7).await?;
        for event in &page.events {
            seen += 1;
            equal("the next position", &event.position, &Position(seen))?;
        }
        ensure!(
            page.head >= Position(seen),
            "the head is {}, behind position {seen} which was read",
            page.head
        );
        tokio::task::yield_now().await;
    }
    while let Some(answer) = writers.join_next().await {
        answer.during("a writer")??;
    }
    Ok(())
}

/// Writes many tasks at once, each by its own writer, one and two events at a time.
fn write_many(journal: &TestJournal) -> JoinSet<Result<Vec<Appended>, Finding>> {
    let mut writers = JoinSet::new();
    for n in 0..TASKS {
        let journal = journal.clone();
        writers.spawn(async move {
            let mut answers =
                vec![journal.write(draft(&task(n), Expected::NoTask, vec![created()])).await?];
            for turn in 0..APPENDS {
                let seq = 1 + turn / 2 * 3 + turn % 2;
                let notes = (0..=turn % 2).map(note).collect();
                answers.push(journal.write(draft(&task(n), at(seq), notes)).await?);
            }
            Ok(answers)
        });
    }
    writers
}

fn events_in_all() -> u64 {
    TASKS * (1 + APPENDS / 2 * 3)
}
