//! Positions, seqs and batches.

use std::collections::HashMap;

use antiphon_core::port::{Appended, Expected, JournalError};
use antiphon_core::{Position, Seq, TaskId};

use super::test_journal::{TestJournal, at, created, draft, note, task};
use crate::suite::{Outcome, ensure, equal};

pub(super) async fn positions_and_seqs_count_from_one_without_a_gap(
    journal: TestJournal,
) -> Outcome {
    let (a, b) = (task(1), task(2));
    let answers = [
        journal.create(&a).await?,
        journal.create(&b).await?,
        journal.write(draft(&a, at(1), vec![note(1), note(2), note(3)])).await?,
        journal.write(draft(&b, at(1), vec![note(4), note(5)])).await?,
    ];
    let answer = |task: &TaskId, position, seq| Appended {
        task_id: task.clone(),
        position: Position(position),
        seq: Seq(seq),
        deduplicated: false,
    };
    let expected = [answer(&a, 1, 1), answer(&b, 2, 1), answer(&a, 5, 4), answer(&b, 7, 3)];
    equal("the answers", &answers, &expected)?;

    let mut seqs: HashMap<TaskId, u64> = HashMap::new();
    for (position, event) in (1..).zip(journal.all().await?) {
        let seq = seqs.entry(event.task_id).or_default();
        *seq += 1;
        equal("a position", &event.position, &Position(position))?;
        equal("a seq", &event.seq, &Seq(*seq))?;
    }
    Ok(())
}

pub(super) async fn a_batch_is_written_whole_and_in_order(journal: TestJournal) -> Outcome {
    let batch: Vec<_> = [created()].into_iter().chain((1..=5).map(note)).collect();
    journal.write(draft(&task(1), Expected::NoTask, batch.clone())).await?;
    let found: Vec<_> = journal.all().await?.into_iter().map(|event| event.body).collect();
    equal("the batch", &found, &batch)
}

pub(super) async fn a_refused_batch_leaves_nothing_behind(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    let batch = vec![note(1), note(2), created()];
    let error = journal.refused(draft(&task(1), at(1), batch)).await?;
    ensure!(
        matches!(error, JournalError::Invalid { .. }),
        "a batch with a creation in it was refused with: {error}"
    );
    Ok(())
}
