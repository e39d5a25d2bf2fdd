//! What is kept at hand of each conversation.

use antiphon_core::port::{Append, Expected};
use antiphon_core::{SessionId, SessionSummary, TaskStatus};
use chrono::TimeDelta;

use super::happening::{asked, created_in};
use super::scribe::{Scribe, at, draft, noon, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

pub(super) async fn sessions_are_listed_by_their_newest_tasks(scribe: Scribe) -> Outcome {
    equal("the sessions of an empty journal", &names(&scribe).await?, &vec![])?;
    for (number, session) in [(1, "old"), (2, "new"), (3, "newer"), (4, "old")] {
        create(&scribe, number, session).await?;
    }
    // Work on a task does not make its session new.
    scribe.write(draft(&task(2), at(1), vec![note(1)])).await?;
    let expected = ["old", "newer", "new"].map(str::to_owned).to_vec();
    equal("the sessions", &names(&scribe).await?, &expected)
}

pub(super) async fn a_session_counts_its_tasks(scribe: Scribe) -> Outcome {
    for (number, session) in [(1, "long"), (2, "long"), (3, "long"), (4, "short")] {
        create(&scribe, number, session).await?;
    }
    scribe.write(draft(&task(2), at(1), vec![status(TaskStatus::Failed)])).await?;
    let counts: Vec<u64> = scribe.sessions(10).await?.iter().map(|found| found.tasks).collect();
    equal("their tasks", &counts, &vec![1, 3])
}

pub(super) async fn a_session_begins_with_its_first_task_and_stands_at_its_last(
    scribe: Scribe,
) -> Outcome {
    let later = |seconds: i64| noon() + TimeDelta::seconds(seconds);
    let session_id = SessionId::parse("talk").during("a session id")?;
    let begin = |number, seconds, title| {
        let events = vec![created_in("talk")?, asked(title)];
        Ok(Append { at: later(seconds), ..draft(&task(number), Expected::NoTask, events) })
    };
    scribe.write(begin(1, 0, "First.")?).await?;
    scribe.write(begin(2, 1, "Second.")?).await?;
    let more = draft(&task(2), at(2), vec![status(TaskStatus::Running)]);
    scribe.write(Append { at: later(2), ..more }).await?;
    let more = draft(&task(1), at(2), vec![status(TaskStatus::Failed)]);
    scribe.write(Append { at: later(3), ..more }).await?;
    let expected = SessionSummary {
        session_id,
        title: "First.".to_owned(),
        tasks: 2,
        last_task: task(2),
        status: TaskStatus::Running,
        created_at: later(0),
        updated_at: later(2),
    };
    equal("the session", &scribe.sessions(10).await?, &vec![expected])
}

async fn create(scribe: &Scribe, number: u64, session: &str) -> Outcome {
    let create = vec![created_in(session)?];
    scribe.write(draft(&task(number), Expected::NoTask, create)).await?;
    Ok(())
}

async fn names(scribe: &Scribe) -> Result<Vec<String>, Finding> {
    let sessions = scribe.sessions(10).await?;
    Ok(sessions.iter().map(|session| session.session_id.to_string()).collect())
}
