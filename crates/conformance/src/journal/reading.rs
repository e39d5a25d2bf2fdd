//! Reads: of one task, of all, from a position, in pages.

use antiphon_core::{Event, Position, Seq, TaskId};

use super::test_journal::{TestJournal, at, draft, note, task};
use crate::suite::{During, Finding, Outcome, ensure, equal};

/// Two interleaved tasks with nine events each.
async fn two_tasks(journal: &TestJournal) -> Result<Vec<Event>, Finding> {
    for n in [1, 2] {
        journal.create(&task(n)).await?;
    }
    for seq in 1..9 {
        for n in [1, 2] {
            journal.write(draft(&task(n), at(seq), vec![note(seq)])).await?;
        }
    }
    journal.all().await
}

/// One id is a prefix of the other: a reader must not confuse them.
pub(super) async fn a_task_is_read_alone_and_in_order(journal: TestJournal) -> Outcome {
    let short = TaskId::parse("remote").during("a task id")?;
    let long = TaskId::parse("remote.1").during("a task id")?;
    for name in [&short, &long] {
        journal.create(name).await?;
    }
    for seq in 1..4 {
        for name in [&long, &short] {
            journal.write(draft(name, at(seq), vec![note(seq)])).await?;
        }
    }
    for name in [&short, &long] {
        let found = journal.read(Some(name), Position(0), 100).await?.events;
        equal("the events of a task", &found, &journal.of(name).await?)?;
        equal("how many there are", &found.len(), &4)?;
    }
    Ok(())
}

pub(super) async fn the_first_events_of_tasks_are_read_together(journal: TestJournal) -> Outcome {
    two_tasks(&journal).await?;
    let asked = vec![task(2), task(3), task(1)];
    let mut found = journal.as_dyn().first_events(asked).await.during("first events")?;
    found.sort_by_key(|event| event.position);
    let found: Vec<_> = found
        .into_iter()
        .map(|event| (event.body.event_type(), event.task_id, event.seq))
        .collect();
    let expected = [1, 2].map(|n| ("task_created", task(n), Seq(1)));
    equal("the first events", &found, &expected.to_vec())?;
    let none = journal.as_dyn().first_events(Vec::new()).await.during("no events")?;
    equal("the first events of no task", &none, &vec![])
}

pub(super) async fn a_task_that_does_not_exist_reads_as_empty(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let page = journal.read(Some(&task(2)), Position(0), 100).await?;
    equal("events of no task", &page.events, &vec![])
}

pub(super) async fn reading_starts_behind_the_given_position(journal: TestJournal) -> Outcome {
    let all = two_tasks(&journal).await?;
    for after in [0, 1, 7, 17, 18, 19, u64::MAX] {
        for name in [None, Some(task(1))] {
            let page = journal.read(name.as_ref(), Position(after), 100).await?;
            let expected: Vec<Event> = all
                .iter()
                .filter(|event| event.position > Position(after))
                .filter(|event| name.as_ref().is_none_or(|name| event.task_id == *name))
                .cloned()
                .collect();
            equal(&format!("events behind {after}"), &page.events, &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn pages_cover_everything_exactly_once(journal: TestJournal) -> Outcome {
    let all = two_tasks(&journal).await?;
    for limit in [1, 2, 5, 18] {
        for name in [None, Some(task(2))] {
            let mut found = Vec::new();
            let mut after = Position(0);
            // An empty page is the end; more pages than events are an error.
            for _ in 0..=all.len() {
                let page = journal.read(name.as_ref(), after, limit).await?;
                if page.events.is_empty() {
                    break;
                }
                after = page.next;
                found.extend(page.events);
            }
            let mut expected = all.clone();
            expected.retain(|event| name.as_ref().is_none_or(|name| event.task_id == *name));
            equal(&format!("pages of {limit}, joined"), &found, &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn a_page_is_never_longer_than_its_limit(journal: TestJournal) -> Outcome {
    two_tasks(&journal).await?;
    for limit in [1, 2, 8] {
        for name in [None, Some(task(1))] {
            let page = journal.read(name.as_ref(), Position(0), limit).await?;
            ensure!(
                page.events.len() <= limit,
                "a page of at most {limit} has {} events",
                page.events.len()
            );
        }
    }
    Ok(())
}

pub(super) async fn a_reader_at_the_end_continues_from_there(journal: TestJournal) -> Outcome {
    journal.create_up_to(&task(1), 3).await?;
    journal.create(&task(2)).await?;
    for name in [None, Some(task(1)), Some(task(2))] {
        let whole = journal.read(name.as_ref(), Position(0), 100).await?;
        let empty = journal.read(name.as_ref(), whole.next, 100).await?;
        let again = journal.read(name.as_ref(), empty.next, 100).await?;
        equal("events behind the end", &again.events, &vec![])?;
    }
    let end = journal.read(None, Position(4), 100).await?.next;
    journal.write(draft(&task(1), at(3), vec![note(3)])).await?;
    let found = journal.read(None, end, 100).await?.events;
    equal("what came later", &found, &journal.all().await?[4..].to_vec())
}

pub(super) async fn the_head_is_the_last_position_of_the_whole_journal(
    journal: TestJournal,
) -> Outcome {
    let head = journal.read(None, Position(0), 10).await?.head;
    equal("the head of an empty journal", &head, &Position(0))?;
    journal.create_up_to(&task(1), 3).await?;
    journal.create(&task(2)).await?;
    let reads = [
        (None, 0, 10),
        (None, 0, 1),
        (None, 4, 10),
        (Some(task(1)), 0, 10),
        (Some(task(2)), 4, 10),
    ];
    for (name, after, limit) in reads {
        let page = journal.read(name.as_ref(), Position(after), limit).await?;
        equal("the head", &page.head, &Position(4))?;
    }
    Ok(())
}
