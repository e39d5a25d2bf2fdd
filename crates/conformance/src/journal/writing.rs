//! Writers with a wrong expectation of the task's position.

use antiphon_core::Seq;
use antiphon_core::port::{APPEND_EVENTS_MAX, Expected, JournalError, KEY_BYTES_MAX};

use super::test_journal::{TestJournal, at, created, draft, keyed, note, task};
use crate::suite::{Outcome, ensure, equal};

pub(super) async fn a_stale_writer_is_refused_and_nothing_is_written(
    journal: TestJournal,
) -> Outcome {
    journal.create_up_to(&task(1), 3).await?;
    for believed in [1, 2, 4, 100] {
        let error = journal.refused(draft(&task(1), at(believed), vec![note(9)])).await?;
        let expected =
            JournalError::Stale { task_id: task(1), expected: Seq(believed), actual: Seq(3) };
        equal("the refusal", &error, &expected)?;
    }
    journal.write(draft(&task(1), at(3), vec![note(9)])).await?;
    Ok(())
}

pub(super) async fn a_task_that_exists_is_not_created_again(journal: TestJournal) -> Outcome {
    journal.create_up_to(&task(1), 2).await?;
    let again = draft(&task(1), Expected::NoTask, vec![created()]);
    let expected = JournalError::Stale { task_id: task(1), expected: Seq(0), actual: Seq(2) };
    equal("the refusal", &journal.refused(again).await?, &expected)
}

pub(super) async fn a_task_that_does_not_exist_is_at_zero(journal: TestJournal) -> Outcome {
    let orphan = draft(&task(1), at(5), vec![note(1)]);
    let expected = JournalError::Stale { task_id: task(1), expected: Seq(5), actual: Seq(0) };
    equal("the refusal", &journal.refused(orphan).await?, &expected)
}

pub(super) async fn an_empty_append_is_invalid(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    for append in [draft(&task(1), at(1), vec![]), draft(&task(2), Expected::NoTask, vec![])] {
        let error = journal.refused(append).await?;
        ensure!(
            matches!(error, JournalError::Invalid { .. }),
            "an empty append was refused with: {error}"
        );
    }
    Ok(())
}

pub(super) async fn too_many_events_at_once_are_invalid(journal: TestJournal) -> Outcome {
    let batch = |events: usize| {
        let events = [created()].into_iter().chain((1..).map(note)).take(events);
        draft(&task(1), Expected::NoTask, events.collect())
    };
    let error = journal.refused(batch(APPEND_EVENTS_MAX + 1)).await?;
    ensure!(
        matches!(error, JournalError::Invalid { .. }),
        "too many events were refused with: {error}"
    );
    // Far fewer are allowed: an imported session comes in one append.
    journal.write(batch(APPEND_EVENTS_MAX / 8)).await?;
    Ok(())
}

pub(super) async fn a_key_that_is_too_long_is_invalid(journal: TestJournal) -> Outcome {
    let create =
        |key: usize| keyed(&"k".repeat(key), draft(&task(1), Expected::NoTask, vec![created()]));
    let error = journal.refused(create(KEY_BYTES_MAX + 1)).await?;
    ensure!(
        matches!(error, JournalError::Invalid { .. }),
        "a key that is too long was refused with: {error}"
    );
    journal.write(create(KEY_BYTES_MAX)).await?;
    Ok(())
}
