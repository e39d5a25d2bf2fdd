//! Checkpoints. A journal may lose them, and never returns a wrong one.

use antiphon_core::port::Checkpoint;
use antiphon_core::{Position, Seq};

use super::test_journal::{TestJournal, task};
use crate::suite::{During, Finding, Outcome, equal};

pub(super) async fn a_checkpoint_is_the_last_one_of_its_task(journal: TestJournal) -> Outcome {
    let last = journal.create_up_to(&task(1), 3).await?;
    let first = checkpoint(1, Seq(2), Position(last.position.0 - 1), "first");
    let second = checkpoint(1, last.seq, last.position, "second");
    equal("a checkpoint of no task", &find(&journal, 2).await?, &None)?;
    for saved in [first, second] {
        save(&journal, saved.clone()).await?;
        // A journal may keep none.
        let found = find(&journal, 1).await?;
        equal("the checkpoint", &found.as_ref().unwrap_or(&saved), &&saved)?;
    }
    journal.as_dyn().forget_checkpoints().await.during("forget_checkpoints")?;
    equal("a forgotten checkpoint", &find(&journal, 1).await?, &None)
}

pub(super) async fn a_checkpoint_that_does_not_fit_the_log_is_none(
    journal: TestJournal,
) -> Outcome {
    let last = journal.create_up_to(&task(1), 3).await?;
    let other = journal.create(&task(2)).await?;
    let ahead = Seq(last.seq.0 + 1);
    for (seq, position) in [
        (ahead, last.position),
        (last.seq, Position(last.position.0 - 1)),
        (ahead, other.position),
        (ahead, Position(other.position.0 + 1)),
    ] {
        save(&journal, checkpoint(1, seq, position, "of no event")).await?;
        equal("a checkpoint at no event of the task", &find(&journal, 1).await?, &None)?;
    }
    Ok(())
}

fn checkpoint(n: u64, seq: Seq, position: Position, data: &str) -> Checkpoint {
    Checkpoint { task_id: task(n), seq, position, data: data.to_owned() }
}

async fn save(journal: &TestJournal, checkpoint: Checkpoint) -> Outcome {
    journal.as_dyn().save_checkpoint(checkpoint).await.during("save_checkpoint")
}

async fn find(journal: &TestJournal, n: u64) -> Result<Option<Checkpoint>, Finding> {
    journal.as_dyn().checkpoint(&task(n)).await.during("checkpoint")
}
