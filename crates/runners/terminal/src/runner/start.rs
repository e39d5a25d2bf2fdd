//! Whether a program may be started: a person has to start it or allow it, and a program that was cut off is
//! started again only if its profile or a person says so.

use antiphon_core::TaskStatus;
use antiphon_core::port::{InputPermit, InputSubject, RunnerError, RunnerTask};
use serde_json::json;

use super::message_typing::question_note;
use crate::profile::TerminalProfile;
use crate::task::journal::JournalView;

/// What to do about a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Start the program.
    Now,
    /// Do not: the task has ended or is stopped.
    No,
}

/// Waits until a person has started or allowed the program. Ends the task when it is denied.
pub(super) async fn permitted(run: &mut RunnerTask) -> Result<Start, RunnerError> {
    let mut journal_view = JournalView::open(run.journal.clone(), run.task_id.clone()).await?;
    while !journal_view.has_ended() {
        match run.input.permit(InputSubject::Start).await? {
            InputPermit::Allowed => return Ok(Start::Now),
            InputPermit::Asked { question } => {
                journal_view.note_wait(Some(question_note(&question))).await?;
                if next_answer(run, &mut journal_view).await? == Start::No {
                    return Ok(Start::No);
                }
            }
            InputPermit::Denied { reason } => {
                let error = format!("the program was not started: {reason}");
                let detail = json!({ "code": "denied", "error": error });
                // A resident agent that a person does not want counts as stopped: the next message must not
                // ask again.
                let is_resident = journal_view.is_resident();
                let status = if is_resident { TaskStatus::Canceled } else { TaskStatus::Failed };
                journal_view.end(status, detail).await?;
            }
        }
    }
    Ok(Start::No)
}

/// Decides about a program that was cut off. While a person has a question to answer about it, the task
/// stays: it goes on with the first message that is allowed.
pub(super) async fn again(
    run: &mut RunnerTask,
    profile: &TerminalProfile,
    journal_view: &mut JournalView,
) -> Result<Start, RunnerError> {
    let allowed = journal_view.answers().allowed;
    while !profile.restart.allows(journal_view.attempts() + 1)
        && journal_view.answers().allowed == allowed
    {
        if journal_view.has_ended() {
            return Ok(Start::No);
        }
        if !journal_view.has_questions() {
            let name = profile.command.first().map_or("", String::as_str);
            let error = format!("`{name}` was cut off, and is not begun again");
            let detail = json!({ "code": "interrupted", "error": error });
            journal_view.end(TaskStatus::Failed, detail).await?;
            return Ok(Start::No);
        }
        if next_answer(run, journal_view).await? == Start::No {
            return Ok(Start::No);
        }
    }
    Ok(Start::Now)
}

/// Waits until a person has answered a question.
async fn next_answer(
    run: &mut RunnerTask,
    journal_view: &mut JournalView,
) -> Result<Start, RunnerError> {
    journal_view.catch_up().await?;
    let before = journal_view.answers();
    while journal_view.answers() == before && journal_view.has_questions() {
        if journal_view.has_ended() {
            return Ok(Start::No);
        }
        tokio::select! {
            biased;
            () = &mut run.cancel => return Ok(Start::No),
            () = &mut run.shutdown => return Ok(Start::No),
            () = run.updates.next() => journal_view.catch_up().await?,
        }
    }
    Ok(Start::Now)
}
