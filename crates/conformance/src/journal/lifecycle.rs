//! The start and the end of a task.

use antiphon_core::port::{Expected, JournalError};
use antiphon_core::{EventBody, TaskId, TaskStatus};

use super::test_journal::{TestJournal, at, behind, created, draft, note, status, task};
use crate::suite::{Finding, Outcome, ensure, equal};

pub(super) async fn a_task_begins_with_its_creation(journal: TestJournal) -> Outcome {
    let orphan = draft(&task(1), Expected::NoTask, vec![note(1)]);
    invalid(&journal.refused(orphan).await?)
}

pub(super) async fn a_task_is_created_at_its_beginning_only(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    for append in [
        draft(&task(1), at(1), vec![created(), note(1)]),
        draft(&task(2), Expected::NoTask, vec![created(), created()]),
    ] {
        invalid(&journal.refused(append).await?)?;
    }
    Ok(())
}

pub(super) async fn nothing_follows_a_terminal_status(journal: TestJournal) -> Outcome {
    for (n, task) in ended(&journal).await?.into_iter().enumerate() {
        let more: [EventBody; 3] =
            [note(1), status(TaskStatus::Running), status(TaskStatus::Completed)];
        let append = draft(&task, at(2), vec![more[n].clone()]);
        let expected = JournalError::Ended { task_id: task.clone() };
        equal("the refusal", &journal.refused(append).await?, &expected)?;
    }
    Ok(())
}

pub(super) async fn a_terminal_status_is_the_last_of_its_batch(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    for append in [
        draft(&task(1), at(1), vec![status(TaskStatus::Failed), note(1)]),
        draft(
            &task(2),
            Expected::NoTask,
            vec![created(), status(TaskStatus::Completed), status(TaskStatus::Canceled)],
        ),
    ] {
        invalid(&journal.refused(append).await?)?;
    }
    let whole = vec![note(1), status(TaskStatus::Completed)];
    journal.write(draft(&task(1), at(1), whole)).await?;
    Ok(())
}

/// A writer that is late need not read the task again to learn that it has ended.
pub(super) async fn an_ended_task_refuses_appends_with_any_expected_position(
    journal: TestJournal,
) -> Outcome {
    for task in ended(&journal).await? {
        for append in [
            draft(&task, at(1), vec![note(1)]),
            draft(&task, behind(1), vec![note(1)]),
            draft(&task, behind(2), vec![note(1)]),
            draft(&task, Expected::Exists, vec![note(1)]),
            draft(&task, Expected::NoTask, vec![created()]),
        ] {
            let expected = JournalError::Ended { task_id: task.clone() };
            equal("the refusal", &journal.refused(append).await?, &expected)?;
        }
    }
    Ok(())
}

pub(super) async fn a_task_goes_on_after_any_other_status(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let others = TaskStatus::ALL.into_iter().filter(|status| !status.is_terminal());
    for (seq, other) in (1..).zip(others) {
        journal.write(draft(&task(1), at(seq), vec![status(other)])).await?;
    }
    journal.write(draft(&task(1), at(4), vec![note(1)])).await?;
    Ok(())
}

/// One task for each terminal status.
async fn ended(journal: &TestJournal) -> Result<Vec<TaskId>, Finding> {
    let mut tasks = Vec::new();
    let ends = TaskStatus::ALL.into_iter().filter(|status| status.is_terminal());
    for (n, end) in (1..).zip(ends) {
        journal.create(&task(n)).await?;
        journal.write(draft(&task(n), at(1), vec![status(end)])).await?;
        tasks.push(task(n));
    }
    Ok(tasks)
}

fn invalid(error: &JournalError) -> Outcome {
    ensure!(
        matches!(error, JournalError::Invalid { .. }),
        "it was not refused as invalid, but: {error}"
    );
    Ok(())
}
