//! Which tasks there are.

use antiphon_core::TaskStatus;
use antiphon_core::port::Which;

use super::scribe::{Scribe, at, draft, note, status, task};
use crate::suite::{Outcome, equal};

pub(super) async fn tasks_are_listed_the_newest_first(scribe: Scribe) -> Outcome {
    equal("the tasks of an empty journal", &scribe.tasks(Which::All, 10).await?, &vec![])?;
    for number in [2, 1, 3] {
        scribe.create(&task(number)).await?;
    }
    // Work on an old task does not make it new.
    scribe.write(draft(&task(2), at(1), vec![note(1)])).await?;
    let expected = vec![task(3), task(1), task(2)];
    equal("the tasks", &scribe.tasks(Which::All, 10).await?, &expected)
}

pub(super) async fn a_list_is_never_longer_than_asked(scribe: Scribe) -> Outcome {
    for number in 1..=3 {
        scribe.create(&task(number)).await?;
    }
    let expected = vec![task(3), task(2)];
    equal("two of three tasks", &scribe.tasks(Which::All, 2).await?, &expected)
}

pub(super) async fn a_task_is_unfinished_until_its_terminal_status(scribe: Scribe) -> Outcome {
    for number in 1..=3 {
        scribe.create(&task(number)).await?;
    }
    scribe.write(draft(&task(1), at(1), vec![status(TaskStatus::InputRequired)])).await?;
    scribe.write(draft(&task(2), at(1), vec![status(TaskStatus::Failed)])).await?;
    let expected = vec![task(3), task(1)];
    equal("the unfinished ones", &scribe.tasks(Which::Unfinished, 10).await?, &expected)?;
    let expected = vec![task(3), task(2), task(1)];
    equal("all of them", &scribe.tasks(Which::All, 10).await?, &expected)
}
