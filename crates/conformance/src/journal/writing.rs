//! Writers who are wrong about where a task is.

use antiphon_core::Seq;
use antiphon_core::port::{Expected, JournalError};

use super::scribe::{Scribe, at, created, draft, note, task};
use crate::suite::{Outcome, ensure, equal};

pub(super) async fn a_stale_writer_is_refused_and_nothing_is_written(scribe: Scribe) -> Outcome {
    scribe.create_up_to(&task(1), 3).await?;
    for believed in [1, 2, 4, 100] {
        let error = scribe.refused(draft(&task(1), at(believed), vec![note(9)])).await?;
        let expected =
            JournalError::Stale { task_id: task(1), expected: Seq(believed), actual: Seq(3) };
        equal("the refusal", &error, &expected)?;
    }
    scribe.write(draft(&task(1), at(3), vec![note(9)])).await?;
    Ok(())
}

pub(super) async fn a_task_that_exists_is_not_created_again(scribe: Scribe) -> Outcome {
    scribe.create_up_to(&task(1), 2).await?;
    let again = draft(&task(1), Expected::NoTask, vec![created()]);
    let expected = JournalError::Stale { task_id: task(1), expected: Seq(0), actual: Seq(2) };
    equal("the refusal", &scribe.refused(again).await?, &expected)
}

pub(super) async fn a_task_that_does_not_exist_is_at_zero(scribe: Scribe) -> Outcome {
    let orphan = draft(&task(1), at(5), vec![note(1)]);
    let expected = JournalError::Stale { task_id: task(1), expected: Seq(5), actual: Seq(0) };
    equal("the refusal", &scribe.refused(orphan).await?, &expected)
}

pub(super) async fn an_empty_append_is_invalid(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    for append in [draft(&task(1), at(1), vec![]), draft(&task(2), Expected::NoTask, vec![])] {
        let error = scribe.refused(append).await?;
        ensure!(
            matches!(error, JournalError::Invalid { .. }),
            "an empty append was refused with: {error}"
        );
    }
    Ok(())
}
