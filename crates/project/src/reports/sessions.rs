//! Sessions of the journal: summarized, read whole, imported and forked.
//!
//! An imported session keeps its messages as they are. The model reads them later as the user's words, so
//! only a person may import one.

use std::num::NonZeroUsize;

use antiphon_core::port::{SessionQuery, TaskFilter, TaskQuery, TaskSelector};
use antiphon_core::{HistoryRef, ImportedTimes, Session, SessionId, SessionSummary, TaskId};
use antiphon_runtime::{ImportedConversation, Orchestrator, OrchestratorError, PriorHistory};

/// Tasks of one session that are read, at most.
const SESSION_TASKS_MAX: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Tasks of one payer that are read at a time.
const OWN_TASKS_PAGE: NonZeroUsize = NonZeroUsize::new(100).unwrap();

/// Summary of a session; `None` when the journal has no such session.
pub async fn session_summary(
    orchestrator: &Orchestrator,
    session_id: &SessionId,
) -> Result<Option<SessionSummary>, OrchestratorError> {
    let which = TaskSelector::Session(session_id.clone());
    let tasks = orchestrator.tasks(TaskQuery { which, limit: SESSION_TASKS_MAX }).await?;
    let (Some(newest), Some(oldest)) = (tasks.first(), tasks.last()) else { return Ok(None) };
    Ok(Some(SessionSummary {
        session_id: session_id.clone(),
        title: oldest.title.clone(),
        tasks: tasks.len() as u64,
        last_task: newest.task_id.clone(),
        status: newest.status,
        created_at: oldest.session_created_at(),
        updated_at: newest.session_updated_at(),
    }))
}

/// Sessions whose newest task an API key pays for, the one with the newest task first. Looks through the tasks of the
/// key alone.
pub async fn own_sessions(
    orchestrator: &Orchestrator,
    payer: String,
    query: SessionQuery,
) -> Result<Vec<SessionSummary>, OrchestratorError> {
    let SessionQuery { mut before, limit } = query;
    let mut sessions = Vec::new();
    loop {
        let payer = Some(payer.clone());
        let filter = TaskFilter { payer, before: before.clone(), ..TaskFilter::default() };
        let page = TaskQuery { which: TaskSelector::Matching(filter), limit: OWN_TASKS_PAGE };
        let tasks = orchestrator.tasks(page).await?;
        let Some(last) = tasks.last() else { return Ok(sessions) };
        before = Some(last.task_id.clone());
        for task in tasks {
            let which = TaskSelector::Session(task.session_id.clone());
            let newest = TaskQuery { which, limit: NonZeroUsize::MIN };
            let newest = orchestrator.tasks(newest).await?.into_iter().next();
            if newest.is_some_and(|newest| newest.task_id == task.task_id) {
                sessions.extend(session_summary(orchestrator, &task.session_id).await?);
            }
            if sessions.len() == limit.get() {
                return Ok(sessions);
            }
        }
    }
}

/// A session with all of its messages.
pub async fn session_of(
    orchestrator: &Orchestrator,
    summary: SessionSummary,
) -> Result<Session, OrchestratorError> {
    let state = orchestrator.task(&summary.last_task).await?;
    Ok(Session {
        id: summary.session_id,
        system_prompt: state.created.system_prompt.clone(),
        created_at: summary.created_at,
        updated_at: summary.updated_at,
        messages: state.messages().to_vec(),
    })
}

/// A session from elsewhere, ready to be stored under its own id. Hidden characters in it are escaped.
pub fn imported(session: Session) -> ImportedConversation {
    let session = session.with_hidden_text_escaped();
    ImportedConversation {
        agent: "import".to_owned(),
        session_id: Some(session.id),
        system_prompt: session.system_prompt,
        before: PriorHistory::Messages(session.messages),
        times: Some(ImportedTimes {
            created_at: session.created_at,
            updated_at: session.updated_at,
        }),
        payer: None,
        key: None,
    }
}

/// A new session that starts with the messages of task `last`, ready to be stored. The new session refers
/// to the messages; none is copied.
pub async fn forked(
    orchestrator: &Orchestrator,
    last: TaskId,
) -> Result<ImportedConversation, OrchestratorError> {
    let state = orchestrator.task_alone(&last).await?;
    Ok(ImportedConversation {
        agent: "fork".to_owned(),
        session_id: None,
        system_prompt: state.created.system_prompt.clone(),
        before: PriorHistory::Task(HistoryRef { task_id: last, seq: state.seq }),
        times: None,
        payer: None,
        key: None,
    })
}
