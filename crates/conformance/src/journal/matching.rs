//! Filters of tasks, page by page.

use antiphon_core::port::{Expected, TaskFilter, TaskSelector};
use antiphon_core::{ORDERS, SessionId, TaskCreated, TaskId, TaskStatus};

use super::sample_events::handed_over;
use super::test_journal::{TestJournal, at, created, draft, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

async fn matching(
    journal: &TestJournal,
    filter: TaskFilter,
    limit: usize,
) -> Result<Vec<TaskId>, Finding> {
    journal.listed(TaskSelector::Matching(filter), limit).await
}

fn numbered(numbers: &[u64]) -> Vec<TaskId> {
    numbers.iter().copied().map(task).collect()
}

pub(super) async fn tasks_are_found_by_every_condition_of_a_filter(
    journal: TestJournal,
) -> Outcome {
    let session = |name| SessionId::parse(name).during("a session id");
    let tasks = [
        (1, "dev", "talk", None, Some("key-a"), TaskStatus::Completed),
        (2, "dev", "talk", Some(task(1)), Some("key-b"), TaskStatus::Failed),
        (3, "lead", "talk", None, None, TaskStatus::Failed),
        (4, "dev", "talk.2", None, Some("key-a"), TaskStatus::Running),
        (5, "dev", "talk.2", None, Some("key-b"), TaskStatus::Failed),
    ];
    for (number, agent, session_id, parent, payer, reached) in tasks {
        let payer = payer.map(str::to_owned);
        let created =
            TaskCreated { parent, payer, ..TaskCreated::new(agent, session(session_id)?) }.into();
        let events = vec![created, status(reached)];
        journal.write(draft(&task(number), Expected::NoTask, events)).await?;
    }
    let any = TaskFilter::default();
    let dev = TaskFilter { agent: Some("dev".to_owned()), ..any.clone() };
    let failed = |filter: TaskFilter| TaskFilter { statuses: vec![TaskStatus::Failed], ..filter };
    let both = vec![TaskStatus::Running, TaskStatus::Failed, TaskStatus::Running];
    let talk = TaskFilter { session: Some(session("talk")?), ..any.clone() };
    let key = |name: &str| TaskFilter { payer: Some(name.to_owned()), ..any.clone() };
    let cases: [(TaskFilter, &[u64]); 16] = [
        (key("key-a"), &[4, 1]),
        (key("key-b"), &[5, 2]),
        (key("key"), &[]),
        (failed(TaskFilter { agent: dev.agent.clone(), ..key("key-b") }), &[5, 2]),
        (TaskFilter { roots: true, session: talk.session.clone(), ..key("key-b") }, &[]),
        (any.clone(), &[5, 4, 3, 2, 1]),
        (dev.clone(), &[5, 4, 2, 1]),
        (failed(any.clone()), &[5, 3, 2]),
        (failed(dev.clone()), &[5, 2]),
        (TaskFilter { statuses: both.clone(), ..any.clone() }, &[5, 4, 3, 2]),
        (TaskFilter { statuses: both, ..dev.clone() }, &[5, 4, 2]),
        (talk.clone(), &[3, 2, 1]),
        (failed(TaskFilter { agent: dev.agent.clone(), ..talk }), &[2]),
        (TaskFilter { roots: true, ..any.clone() }, &[5, 4, 3, 1]),
        (TaskFilter { roots: true, ..failed(dev) }, &[5]),
        (TaskFilter { agent: Some("de".to_owned()), ..any }, &[]),
    ];
    for (filter, expected) in cases {
        let found = matching(&journal, filter.clone(), 10).await?;
        equal(&format!("those that are {filter:?}"), &found, &numbered(expected))?;
        let found = matching(&journal, filter.clone(), 2).await?;
        let two = &expected[..expected.len().min(2)];
        equal(&format!("the newest two of {filter:?}"), &found, &numbered(two))?;
    }
    // The agent is the current one.
    journal.write(draft(&task(4), at(2), vec![handed_over("lead", None)?])).await?;
    let lead = TaskFilter { agent: Some("lead".to_owned()), ..TaskFilter::default() };
    equal("those of `lead`", &matching(&journal, lead, 10).await?, &numbered(&[4, 3]))
}

pub(super) async fn pages_of_a_list_stay_as_they_are_while_tasks_are_added(
    journal: TestJournal,
) -> Outcome {
    // The order is that of creation, not of ids.
    for number in [5, 1, 4, 2, 3] {
        journal.create(&task(number)).await?;
    }
    let behind = |before| TaskFilter { before: Some(before), ..TaskFilter::default() };
    let first = matching(&journal, TaskFilter::default(), 2).await?;
    equal("the first page", &first, &numbered(&[3, 2]))?;
    journal.create(&task(9)).await?;
    journal.write(draft(&task(5), at(1), vec![note(1), status(TaskStatus::Failed)])).await?;
    equal("the second", &matching(&journal, behind(task(2)), 2).await?, &numbered(&[4, 1]))?;
    equal("the last", &matching(&journal, behind(task(1)), 2).await?, &numbered(&[5]))?;
    equal("behind the last", &matching(&journal, behind(task(5)), 2).await?, &vec![])?;
    let failed = TaskFilter { statuses: vec![TaskStatus::Failed], ..behind(task(9)) };
    equal("those of them that failed", &matching(&journal, failed, 2).await?, &numbered(&[5]))
}

pub(super) async fn a_cursor_that_does_not_exist_gives_an_empty_page(
    journal: TestJournal,
) -> Outcome {
    journal.create(&task(1)).await?;
    let filter = TaskFilter { before: Some(task(2)), ..TaskFilter::default() };
    equal("those before it", &matching(&journal, filter, 10).await?, &vec![])
}

pub(super) async fn a_filter_leaves_out_records_of_orders(journal: TestJournal) -> Outcome {
    let session = || SessionId::parse("talk").during("a session id");
    journal.create(&task(1)).await?;
    for (number, reached) in [(2, TaskStatus::Completed), (3, TaskStatus::Failed)] {
        let events = vec![TaskCreated::new(ORDERS, session()?).into(), status(reached)];
        journal.write(draft(&task(number), Expected::NoTask, events)).await?;
    }
    let end = vec![created(), status(TaskStatus::Completed)];
    journal.write(draft(&task(4), Expected::NoTask, end)).await?;
    let without = TaskFilter { without_records: true, ..TaskFilter::default() };
    let found = matching(&journal, without.clone(), 10).await?;
    equal("those that do something", &found, &numbered(&[4, 3, 1]))?;
    let completed = TaskFilter { statuses: vec![TaskStatus::Completed], ..without };
    equal("those that are done", &matching(&journal, completed, 10).await?, &numbered(&[4]))?;
    let found = matching(&journal, TaskFilter::default(), 10).await?;
    equal("all of them", &found, &numbered(&[4, 3, 2, 1]))
}
