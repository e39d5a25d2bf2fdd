//! Idempotency keys: the same key gives the same answer, once.

use antiphon_core::TaskStatus;
use antiphon_core::port::{Append, Appended, Expected, JournalError};
use tokio::task::JoinSet;

use super::test_journal::{TestJournal, at, created, draft, keyed, note, status, task};
use crate::suite::{During, Outcome, ensure, equal};

const WRITERS: u64 = 16;

pub(super) async fn a_repeated_key_gets_the_first_answer_and_writes_nothing(
    journal: TestJournal,
) -> Outcome {
    let create = keyed("create", draft(&task(1), Expected::NoTask, vec![created(), note(1)]));
    let add = keyed("add", draft(&task(1), at(2), vec![note(2)]));
    let first = journal.write(create.clone()).await?;
    repeated(&journal, &create, &first).await?;
    let second = journal.write(add.clone()).await?;
    journal.write(draft(&task(1), at(3), vec![note(3)])).await?;
    repeated(&journal, &create, &first).await?;
    repeated(&journal, &add, &second).await
}

pub(super) async fn a_key_used_for_another_task_gets_the_first_ones_answer(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    journal.create(&task(2)).await?;
    let first = journal.write(keyed("k", draft(&task(1), at(1), vec![note(1)]))).await?;
    let other = keyed("k", draft(&task(2), at(1), vec![note(2)]));
    repeated(&journal, &other, &first).await
}

pub(super) async fn a_key_still_counts_when_its_task_has_ended(journal: TestJournal) -> Outcome {
    let create = keyed("create", draft(&task(1), Expected::NoTask, vec![created()]));
    let first = journal.write(create.clone()).await?;
    journal.write(draft(&task(1), at(1), vec![status(TaskStatus::Completed)])).await?;
    repeated(&journal, &create, &first).await
}

pub(super) async fn a_refused_append_leaves_its_key_unused(journal: TestJournal) -> Outcome {
    journal.create_up_to(&task(1), 2).await?;
    journal.refused(keyed("k", draft(&task(1), at(1), vec![note(1)]))).await?;
    let appended = journal.write(keyed("k", draft(&task(1), at(2), vec![note(1)]))).await?;
    ensure!(!appended.deduplicated, "a key was used up by an append that was refused");
    Ok(())
}

/// A caller repeats an order before the first was answered: each attempt made a
/// task id of its own.
pub(super) async fn one_key_used_by_many_at_once_is_written_once(journal: TestJournal) -> Outcome {
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let journal = journal.clone();
        let create = draft(&task(n), Expected::NoTask, vec![created()]);
        writers.spawn(async move { journal.append(keyed("k", create)).await });
    }
    let mut answers: Vec<Appended> = Vec::new();
    while let Some(answer) = writers.join_next().await {
        let answer: Result<Appended, JournalError> = answer.during("a writer")?;
        answers.push(answer.during("append")?);
    }
    let first = answers.iter().filter(|answer| !answer.deduplicated).count();
    equal("answers that are not deduplicated", &first, &1)?;
    for answer in &answers {
        equal("whose answer it is", &answer.task_id, &answers[0].task_id)?;
    }
    equal("events written", &journal.all().await?.len(), &1)
}

pub(super) async fn a_key_that_was_not_used_has_no_answer(journal: TestJournal) -> Outcome {
    journal.create_up_to(&task(1), 2).await?;
    journal.write(keyed("kk", draft(&task(1), at(2), vec![note(2)]))).await?;
    journal.refused(keyed("k", draft(&task(1), at(1), vec![note(1)]))).await?;
    equal("the answer of a refused append", &journal.answered("k").await?, &None)?;
    // Asking for a key does not use it.
    equal("the answer of no append", &journal.answered("q").await?, &None)?;
    let appended = journal.write(keyed("q", draft(&task(1), at(3), vec![note(3)]))).await?;
    ensure!(!appended.deduplicated, "a key was used up by asking for its answer");
    Ok(())
}

pub(super) async fn a_key_that_was_used_has_its_first_answer(journal: TestJournal) -> Outcome {
    let create = keyed("create", draft(&task(1), Expected::NoTask, vec![created(), note(1)]));
    let first = journal.write(create.clone()).await?;
    let expected = Some(Appended { deduplicated: true, ..first });
    equal("the answer of a key", &journal.answered("create").await?, &expected)?;
    journal.write(create).await?;
    journal.write(draft(&task(1), at(2), vec![note(2), status(TaskStatus::Completed)])).await?;
    journal.create(&task(2)).await?;
    equal("the answer of a key later on", &journal.answered("create").await?, &expected)
}

async fn repeated(journal: &TestJournal, append: &Append, first: &Appended) -> Outcome {
    let before = journal.all().await?;
    let expected = Appended { deduplicated: true, ..first.clone() };
    let answer = journal.write(append.clone()).await?;
    equal("the answer to a repeated key", &answer, &expected)?;
    equal("the journal after a repeated key", &journal.all().await?, &before)
}
