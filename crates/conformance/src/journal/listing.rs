//! Lists of tasks, and their pages.

use std::num::NonZeroUsize;

use antiphon_core::port::{
    AgentQuery, ApprovalQuery, ApprovalSelector, Expected, QueuedQuery, SessionQuery, TaskSelector,
};
use antiphon_core::{EventBody, Position, SessionId, TaskCreated, TaskId, TaskStatus};

use super::sample_events::{created_in, moved, queued, requested};
use super::test_journal::{TestJournal, at, draft, note, status, task};
use crate::suite::{During, Outcome, equal};

pub(super) async fn tasks_are_listed_the_newest_first(journal: TestJournal) -> Outcome {
    equal("the tasks of an empty journal", &journal.listed(TaskSelector::All, 10).await?, &vec![])?;
    for number in [2, 1, 3] {
        journal.create(&task(number)).await?;
    }
    // Work on an old task does not make it new.
    journal.write(draft(&task(2), at(1), vec![note(1)])).await?;
    let expected = vec![task(3), task(1), task(2)];
    equal("the tasks", &journal.listed(TaskSelector::All, 10).await?, &expected)
}

/// Appends three tasks, each with a session, an agent, a queued message and an approval.
async fn three_of_each(journal: &TestJournal) -> Outcome {
    for number in 1..=3 {
        let create = vec![created_in(&format!("session-{number}"))?];
        journal.write(draft(&task(number), Expected::NoTask, create)).await?;
        let moves = vec![moved(number.into(), antiphon_core::AgentState::Idle)];
        journal.write(draft(&task(number), at(1), moves)).await?;
        let waiting = vec![queued(number.into()).into(), requested(number)?.into()];
        journal.write(draft(&task(number), at(2), waiting)).await?;
    }
    Ok(())
}

/// Every list with a cursor, page by page, gives each row once. A cursor that does not exist gives
/// an empty page.
pub(super) async fn a_list_continues_behind_its_cursor(journal: TestJournal) -> Outcome {
    three_of_each(&journal).await?;
    let limit = NonZeroUsize::MIN;
    let (newest_first, oldest_first) = ([task(3), task(2), task(1)], [task(1), task(2), task(3)]);

    let (mut before, mut found) = (None, Vec::new());
    while let Some(session) =
        first(journal.as_dyn().sessions(SessionQuery { before, limit }).await.during("sessions")?)
    {
        before = Some(session.last_task.clone());
        found.push(session.last_task);
        equal(
            "the sessions, page by page",
            &found.as_slice(),
            &&newest_first[..found.len().min(3)],
        )?;
    }
    equal("the number of sessions", &found.len(), &3)?;

    let (mut before, mut found) = (None, Vec::new());
    while let Some(agent) =
        first(journal.as_dyn().agents(AgentQuery { before, limit }).await.during("agents")?)
    {
        before = Some(agent.task_id.clone());
        found.push(agent.task_id);
        equal("the agents, page by page", &found.as_slice(), &&newest_first[..found.len().min(3)])?;
    }
    equal("the number of agents", &found.len(), &3)?;

    let (mut after, mut found) = (None, Vec::new());
    loop {
        let query = ApprovalQuery { which: ApprovalSelector::Pending, after, limit };
        let page = journal.as_dyn().approvals(query).await.during("approvals")?;
        let Some(approval) = first(page) else { break };
        after = Some(approval.approval_id);
        found.push(approval.task_id);
        equal(
            "the approvals, page by page",
            &found.as_slice(),
            &&oldest_first[..found.len().min(3)],
        )?;
    }
    equal("the number of approvals", &found.len(), &3)?;

    let (mut after, mut found) = (Position(0), Vec::new());
    while let Some(message) =
        first(journal.as_dyn().queued(QueuedQuery { after, limit }).await.during("queued")?)
    {
        after = message.position;
        found.push(message.task_id);
        equal(
            "the messages, page by page",
            &found.as_slice(),
            &&oldest_first[..found.len().min(3)],
        )?;
    }
    equal("the number of messages", &found.len(), &3)?;
    missing_cursors_give_nothing(&journal).await
}

async fn missing_cursors_give_nothing(journal: &TestJournal) -> Outcome {
    let limit = NonZeroUsize::MIN;
    let before = || Some(task(9));
    let query = SessionQuery { before: before(), limit };
    let sessions = journal.as_dyn().sessions(query).await.during("sessions")?;
    equal("sessions before a task that does not exist", &sessions, &vec![])?;
    let agents = journal.as_dyn().agents(AgentQuery { before: before(), limit }).await;
    equal("agents before a task that does not exist", &agents.during("agents")?, &vec![])?;
    let after = Some(requested(9)?.approval_id);
    let query = ApprovalQuery { which: ApprovalSelector::All, after, limit };
    let approvals = journal.as_dyn().approvals(query).await.during("approvals")?;
    equal("approvals after one that does not exist", &approvals, &vec![])
}

fn first<T>(page: Vec<T>) -> Option<T> {
    page.into_iter().next()
}

pub(super) async fn a_list_is_never_longer_than_its_limit(journal: TestJournal) -> Outcome {
    three_of_each(&journal).await?;
    let expected = vec![task(3), task(2)];
    equal("two of three tasks", &journal.listed(TaskSelector::All, 2).await?, &expected)?;
    equal("two of three sessions", &journal.sessions(2).await?.len(), &2)?;
    equal("two of three approvals", &journal.approvals(2).await?.len(), &2)?;
    equal("two of three agents", &journal.agents(2).await?.len(), &2)?;
    equal("two of three messages", &journal.queued(2).await?.len(), &2)
}

pub(super) async fn a_task_is_unfinished_until_its_terminal_status(
    journal: TestJournal,
) -> Outcome {
    for number in 1..=3 {
        journal.create(&task(number)).await?;
    }
    journal.write(draft(&task(1), at(1), vec![status(TaskStatus::InputRequired)])).await?;
    journal.write(draft(&task(2), at(1), vec![status(TaskStatus::Failed)])).await?;
    let expected = vec![task(3), task(1)];
    equal("the unfinished ones", &journal.listed(TaskSelector::Unfinished, 10).await?, &expected)?;
    let expected = vec![task(3), task(2), task(1)];
    equal("all of them", &journal.listed(TaskSelector::All, 10).await?, &expected)
}

pub(super) async fn a_task_is_found_by_its_id(journal: TestJournal) -> Outcome {
    for number in 1..=2 {
        journal.create(&task(number)).await?;
    }
    journal.write(draft(&task(1), at(1), vec![status(TaskStatus::Completed)])).await?;
    for (which, expected) in [(1, vec![task(1)]), (2, vec![task(2)]), (3, vec![])] {
        let found = journal.listed(TaskSelector::One(task(which)), 10).await?;
        equal("the task of that id", &found, &expected)?;
    }
    Ok(())
}

/// A prefix is literal: a wildcard of SQL is an ordinary character.
pub(super) async fn tasks_are_found_by_a_prefix_of_their_ids(journal: TestJournal) -> Outcome {
    let names = ["a_b1", "axb2", "A_b3", "a_b%", "a_", "a_b\u{1F600}", "b"];
    for name in names {
        journal.create(&named(name)?).await?;
    }
    let cases = [
        ("a_b", vec!["a_b\u{1F600}", "a_b%", "a_b1"]),
        ("a_b%", vec!["a_b%"]),
        ("a_b\u{1F600}", vec!["a_b\u{1F600}"]),
        ("a*", vec![]),
        ("c", vec![]),
        ("", vec!["b", "a_b\u{1F600}", "a_", "a_b%", "A_b3", "axb2", "a_b1"]),
    ];
    for (start, expected) in cases {
        let found = journal.listed(TaskSelector::IdPrefix(start.to_owned()), 10).await?;
        let expected = expected.into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        equal(&format!("tasks that begin with {start:?}"), &found, &expected)?;
    }
    let found = journal.listed(TaskSelector::IdPrefix("a_b".to_owned()), 1).await?;
    equal("the newest of them", &found, &vec![named("a_b\u{1F600}")?])
}

/// Ids are ordered by time: their first digits are those of their neighbors, the last group is random.
pub(super) async fn tasks_are_found_by_the_random_part_of_their_ids(
    journal: TestJournal,
) -> Outcome {
    let one = "01970000-0000-7000-8000-ab12cd34ef56";
    let other = "01970000-0000-7000-8000-ab12cd99ef56";
    let both_ways = "01970000-0000-7000-8000-019700000000";
    // It has the length of a UUID, and is none.
    let text = "x1970000-0000-7000-8000-ab12cd34ef56";
    for name in [one, other, both_ways, text] {
        journal.create(&named(name)?).await?;
    }
    let cases = [
        ("ab12cd34", vec![one]),
        ("ab12cd34ef56", vec![one]),
        ("ab12cd", vec![other, one]),
        ("b12cd", vec![]),
        ("8000-ab12cd34", vec![]),
        ("0197", vec![both_ways, other, one]),
        (one, vec![one]),
    ];
    for (start, expected) in cases {
        let found = journal.listed(TaskSelector::IdPrefix(start.to_owned()), 10).await?;
        let expected = expected.into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        equal(&format!("tasks that {start:?} names"), &found, &expected)?;
    }
    // One that matches in both ways counts once.
    let found = journal.listed(TaskSelector::IdPrefix("0197".to_owned()), 2).await?;
    equal("two of them", &found, &vec![named(both_ways)?, named(other)?])
}

pub(super) async fn a_tree_is_listed_from_its_root(journal: TestJournal) -> Outcome {
    journal.create(&task(1)).await?;
    journal.create(&task(2)).await?;
    for (number, parent, root) in [(3, 1, 1), (4, 3, 1), (5, 2, 2), (6, 1, 1)] {
        let child = EventBody::from(TaskCreated {
            parent: Some(task(parent)),
            root: Some(task(root)),
            ..TaskCreated::new("scribe", SessionId::parse("s").during("a session id")?)
        });
        journal.write(draft(&task(number), Expected::NoTask, vec![child])).await?;
    }
    let expected = vec![task(6), task(4), task(3), task(1)];
    equal("a tree", &journal.listed(TaskSelector::Tree(task(1)), 10).await?, &expected)?;
    let expected = vec![task(6), task(4)];
    equal("the newest of it", &journal.listed(TaskSelector::Tree(task(1)), 2).await?, &expected)?;
    let expected = vec![task(5), task(2)];
    equal("another tree", &journal.listed(TaskSelector::Tree(task(2)), 10).await?, &expected)?;
    let found = journal.listed(TaskSelector::Tree(task(3)), 10).await?;
    equal("a tree of one that is no top", &found, &vec![])?;
    equal("the roots", &journal.listed(TaskSelector::Roots, 10).await?, &vec![task(2), task(1)])?;
    equal("the newest top", &journal.listed(TaskSelector::Roots, 1).await?, &vec![task(2)])
}

pub(super) async fn the_tasks_of_a_session_are_listed_alone(journal: TestJournal) -> Outcome {
    for (number, session) in [(1, "talk"), (2, "talk.2"), (3, "talk"), (4, "talk")] {
        let create = vec![created_in(session)?];
        journal.write(draft(&task(number), Expected::NoTask, create)).await?;
    }
    let session = |name| SessionId::parse(name).during("a session id");
    let cases = [
        ("talk", 10, vec![task(4), task(3), task(1)]),
        ("talk", 2, vec![task(4), task(3)]),
        ("talk.2", 10, vec![task(2)]),
        ("tal", 10, vec![]),
    ];
    for (name, limit, expected) in cases {
        let found = journal.listed(TaskSelector::Session(session(name)?), limit).await?;
        equal(&format!("the tasks of session {name}"), &found, &expected)?;
    }
    Ok(())
}

fn named(name: &str) -> Result<TaskId, crate::suite::Finding> {
    TaskId::parse(name).during("a task id")
}
