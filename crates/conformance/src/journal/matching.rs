//! Which tasks of a long list, page by page.

use antiphon_core::port::{Expected, TaskFilter, TaskSelector};
use antiphon_core::{ORDERS, SessionId, TaskCreated, TaskId, TaskStatus};

use super::happening::handed_over;
use super::scribe::{Scribe, at, created, draft, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

async fn matching(
    scribe: &Scribe,
    filter: TaskFilter,
    limit: usize,
) -> Result<Vec<TaskId>, Finding> {
    scribe.listed(TaskSelector::Matching(filter), limit).await
}

fn numbered(numbers: &[u64]) -> Vec<TaskId> {
    numbers.iter().copied().map(task).collect()
}

pub(super) async fn tasks_are_found_by_all_that_is_asked_of_them(scribe: Scribe) -> Outcome {
    let session = |name| SessionId::parse(name).during("a session id");
    let tasks = [
        (1, "dev", "talk", None, TaskStatus::Completed),
        (2, "dev", "talk", Some(task(1)), TaskStatus::Failed),
        (3, "lead", "talk", None, TaskStatus::Failed),
        (4, "dev", "talk.2", None, TaskStatus::Running),
        (5, "dev", "talk.2", None, TaskStatus::Failed),
    ];
    for (number, agent, session_id, parent, reached) in tasks {
        let created =
            TaskCreated { parent, ..TaskCreated::new(agent, session(session_id)?) }.into();
        let events = vec![created, status(reached)];
        scribe.write(draft(&task(number), Expected::NoTask, events)).await?;
    }
    let any = TaskFilter::default();
    let dev = TaskFilter { agent: Some("dev".to_owned()), ..any.clone() };
    let failed = |filter: TaskFilter| TaskFilter { statuses: vec![TaskStatus::Failed], ..filter };
    let both = vec![TaskStatus::Running, TaskStatus::Failed, TaskStatus::Running];
    let talk = TaskFilter { session: Some(session("talk")?), ..any.clone() };
    let cases: [(TaskFilter, &[u64]); 11] = [
        (any.clone(), &[5, 4, 3, 2, 1]),
        (dev.clone(), &[5, 4, 2, 1]),
        (failed(any.clone()), &[5, 3, 2]),
        (failed(dev.clone()), &[5, 2]),
        (TaskFilter { statuses: both.clone(), ..any.clone() }, &[5, 4, 3, 2]),
        (TaskFilter { statuses: both, ..dev.clone() }, &[5, 4, 2]),
        (talk.clone(), &[3, 2, 1]),
        (failed(TaskFilter { agent: dev.agent.clone(), ..talk }), &[2]),
        (TaskFilter { tops: true, ..any.clone() }, &[5, 4, 3, 1]),
        (TaskFilter { tops: true, ..failed(dev) }, &[5]),
        (TaskFilter { agent: Some("de".to_owned()), ..any }, &[]),
    ];
    for (filter, expected) in cases {
        let found = matching(&scribe, filter.clone(), 10).await?;
        equal(&format!("those that are {filter:?}"), &found, &numbered(expected))?;
        let found = matching(&scribe, filter.clone(), 2).await?;
        let two = &expected[..expected.len().min(2)];
        equal(&format!("the newest two of {filter:?}"), &found, &numbered(two))?;
    }
    // It is whoever works on it now.
    scribe.write(draft(&task(4), at(2), vec![handed_over("lead", None)?])).await?;
    let lead = TaskFilter { agent: Some("lead".to_owned()), ..TaskFilter::default() };
    equal("those of `lead`", &matching(&scribe, lead, 10).await?, &numbered(&[4, 3]))
}

pub(super) async fn pages_of_a_list_stay_as_they_are_while_tasks_are_added(
    scribe: Scribe,
) -> Outcome {
    // The order is that of creation, not of names.
    for number in [5, 1, 4, 2, 3] {
        scribe.create(&task(number)).await?;
    }
    let behind = |before| TaskFilter { before: Some(before), ..TaskFilter::default() };
    let first = matching(&scribe, TaskFilter::default(), 2).await?;
    equal("the first page", &first, &numbered(&[3, 2]))?;
    scribe.create(&task(9)).await?;
    scribe.write(draft(&task(5), at(1), vec![note(1), status(TaskStatus::Failed)])).await?;
    equal("the second", &matching(&scribe, behind(task(2)), 2).await?, &numbered(&[4, 1]))?;
    equal("the last", &matching(&scribe, behind(task(1)), 2).await?, &numbered(&[5]))?;
    equal("behind the last", &matching(&scribe, behind(task(5)), 2).await?, &vec![])?;
    let failed = TaskFilter { statuses: vec![TaskStatus::Failed], ..behind(task(9)) };
    equal("those of them that failed", &matching(&scribe, failed, 2).await?, &numbered(&[5]))
}

pub(super) async fn nothing_was_created_before_a_task_that_is_not_there(scribe: Scribe) -> Outcome {
    scribe.create(&task(1)).await?;
    let filter = TaskFilter { before: Some(task(2)), ..TaskFilter::default() };
    equal("those before it", &matching(&scribe, filter, 10).await?, &vec![])
}

pub(super) async fn what_is_kept_of_orders_is_left_out_of_a_list_that_should_not_have_it(
    scribe: Scribe,
) -> Outcome {
    let session = || SessionId::parse("talk").during("a session id");
    scribe.create(&task(1)).await?;
    for (number, reached) in [(2, TaskStatus::Completed), (3, TaskStatus::Failed)] {
        let events = vec![TaskCreated::new(ORDERS, session()?).into(), status(reached)];
        scribe.write(draft(&task(number), Expected::NoTask, events)).await?;
    }
    let end = vec![created(), status(TaskStatus::Completed)];
    scribe.write(draft(&task(4), Expected::NoTask, end)).await?;
    let without = TaskFilter { without_records: true, ..TaskFilter::default() };
    let found = matching(&scribe, without.clone(), 10).await?;
    equal("those that do something", &found, &numbered(&[4, 3, 1]))?;
    let completed = TaskFilter { statuses: vec![TaskStatus::Completed], ..without };
    equal("those that are done", &matching(&scribe, completed, 10).await?, &numbered(&[4]))?;
    let found = matching(&scribe, TaskFilter::default(), 10).await?;
    equal("all of them", &found, &numbered(&[4, 3, 2, 1]))
}
