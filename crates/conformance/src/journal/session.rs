//! Summaries of sessions.

use antiphon_core::port::{Append, Expected};
use antiphon_core::{ImportedTimes, SessionId, SessionSummary, TaskCreated, TaskStatus};
use chrono::{DateTime, TimeDelta, Utc};

use super::sample_events::{asked, created_in};
use super::test_journal::{TestJournal, at, draft, noon, note, status, task};
use crate::suite::{During, Finding, Outcome, equal};

pub(super) async fn sessions_are_listed_by_their_newest_tasks(journal: TestJournal) -> Outcome {
    equal("the sessions of an empty journal", &names(&journal).await?, &vec![])?;
    for (number, session) in [(1, "old"), (2, "new"), (3, "newer"), (4, "old")] {
        create(&journal, number, session).await?;
    }
    // Work on a task does not make its session new.
    journal.write(draft(&task(2), at(1), vec![note(1)])).await?;
    let expected = ["old", "newer", "new"].map(str::to_owned).to_vec();
    equal("the sessions", &names(&journal).await?, &expected)
}

pub(super) async fn a_session_counts_its_tasks(journal: TestJournal) -> Outcome {
    for (number, session) in [(1, "long"), (2, "long"), (3, "long"), (4, "short")] {
        create(&journal, number, session).await?;
    }
    journal.write(draft(&task(2), at(1), vec![status(TaskStatus::Failed)])).await?;
    let counts: Vec<u64> = journal.sessions(10).await?.iter().map(|found| found.tasks).collect();
    equal("their tasks", &counts, &vec![1, 3])
}

pub(super) async fn a_session_has_the_title_of_its_first_task_and_the_status_of_its_last(
    journal: TestJournal,
) -> Outcome {
    let later = |seconds: i64| noon() + TimeDelta::seconds(seconds);
    let session_id = SessionId::parse("talk").during("a session id")?;
    let begin = |number, seconds, title| {
        let events = vec![created_in("talk")?, asked(title)];
        Ok(Append { at: later(seconds), ..draft(&task(number), Expected::NoTask, events) })
    };
    journal.write(begin(1, 0, "First.")?).await?;
    journal.write(begin(2, 1, "Second.")?).await?;
    let more = draft(&task(2), at(2), vec![status(TaskStatus::Running)]);
    journal.write(Append { at: later(2), ..more }).await?;
    let more = draft(&task(1), at(2), vec![status(TaskStatus::Failed)]);
    journal.write(Append { at: later(3), ..more }).await?;
    let expected = SessionSummary {
        session_id,
        title: "First.".to_owned(),
        tasks: 2,
        last_task: task(2),
        status: TaskStatus::Running,
        created_at: later(0),
        updated_at: later(2),
    };
    equal("the session", &journal.sessions(10).await?, &vec![expected])
}

pub(super) async fn an_imported_session_has_the_times_of_its_file_until_it_is_continued(
    journal: TestJournal,
) -> Outcome {
    let before = |days: i64| noon() - TimeDelta::days(days) + TimeDelta::nanoseconds(days);
    let times = ImportedTimes { created_at: before(9), updated_at: before(8) };
    let session_id = SessionId::parse("talk").during("a session id")?;
    let created = TaskCreated { imported: Some(times), ..TaskCreated::new("import", session_id) };
    let events = vec![created.into(), asked("Hello."), status(TaskStatus::Completed)];
    journal.write(draft(&task(1), Expected::NoTask, events)).await?;
    let found = times_of(&journal).await?;
    equal("the times of its file", &found, &(times.created_at, times.updated_at))?;
    let later = noon() + TimeDelta::seconds(1);
    let more = draft(&task(2), Expected::NoTask, vec![created_in("talk")?]);
    journal.write(Append { at: later, ..more }).await?;
    equal("its times once continued", &times_of(&journal).await?, &(times.created_at, later))
}

async fn times_of(journal: &TestJournal) -> Result<(DateTime<Utc>, DateTime<Utc>), Finding> {
    let mut sessions = journal.sessions(10).await?;
    let session =
        sessions.pop().ok_or_else(|| Finding::Broken("there is no session".to_owned()))?;
    Ok((session.created_at, session.updated_at))
}

async fn create(journal: &TestJournal, number: u64, session: &str) -> Outcome {
    let create = vec![created_in(session)?];
    journal.write(draft(&task(number), Expected::NoTask, create)).await?;
    Ok(())
}

async fn names(journal: &TestJournal) -> Result<Vec<String>, Finding> {
    let sessions = journal.sessions(10).await?;
    Ok(sessions.iter().map(|session| session.session_id.to_string()).collect())
}
