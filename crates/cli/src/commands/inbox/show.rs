//! `antiphon inbox show`: one interaction. It is searched in the inboxes, then in what agents have read, the
//! newest first.

use std::num::NonZeroUsize;

use antiphon_api::{QueuedInteraction, RequestState};
use antiphon_core::port::{Clock, SystemClock, TaskQuery, TaskSelector};
use antiphon_core::{
    AgentName, Event, EventBody, InteractionContent, InteractionId, PeerInputClass, Position,
    QueuedMessage, TaskSummary,
};
use antiphon_process::Connection;
use antiphon_project::{Inboxes, live_agents};
use antiphon_runtime::{Orchestrator, session_of};
use antiphon_view::display::escaped;
use serde::Serialize;
use serde_json::Value;

use super::{mode, salience, word};
use crate::failure::Failure;
use crate::terminal;

/// Most resident tasks of one agent that are searched, the newest first.
const TASKS_MAX: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// An interaction in JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    interaction: &'a QueuedInteraction,
    state: &'static str,
    /// Result of a request.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

/// An interaction, and whether it is still queued.
struct Found {
    interaction: QueuedInteraction,
    waits: bool,
}

/// Shows one interaction.
pub(super) async fn show(
    connection: &Connection,
    names: &[AgentName],
    id: &str,
    json: bool,
) -> Result<(), Failure> {
    let Found { interaction, waits } = match find_waiting(connection, names, id).await? {
        Some(found) => found,
        None => find_read(connection.reader(), names, id).await?.ok_or_else(|| {
            Failure::usage(format!(
                "there is no interaction `{id}` here: see `antiphon inbox list`"
            ))
        })?,
    };
    let is_request = matches!(
        interaction.class,
        PeerInputClass::ActionableRequest | PeerInputClass::SilentRequest
    );
    let status_found =
        if is_request { connection.request_status(names, interaction.id).await? } else { None };
    let (state, result) = match status_found {
        Some(status) => (state(status.state), status.result),
        None if waits => ("waiting", None),
        None => ("read", None),
    };
    let shown = Shown { interaction: &interaction, state, result };
    terminal::print(&if json { terminal::json(&shown)? } else { described(&shown)? });
    Ok(())
}

fn state(state: RequestState) -> &'static str {
    match state {
        RequestState::Waiting => "waiting",
        RequestState::Taken => "taken",
        RequestState::Accepted => "accepted",
        RequestState::Completed => "completed",
        RequestState::Failed => "failed",
    }
}

fn matches_id(found: InteractionId, id: &str) -> bool {
    found.to_string().starts_with(&id.to_lowercase())
}

async fn find_waiting(
    connection: &Connection,
    names: &[AgentName],
    id: &str,
) -> Result<Option<Found>, Failure> {
    let (found, _) = connection.queued_interactions(Inboxes::All(names), NonZeroUsize::MAX).await?;
    let mut matching = found.into_iter().filter(|waiting| matches_id(waiting.id, id));
    match (matching.next(), matching.next()) {
        (Some(one), Some(other)) if one.id != other.id => Err(more_than_one(id)),
        (first, _) => Ok(first.map(|interaction| Found { interaction, waits: true })),
    }
}

fn more_than_one(id: &str) -> Failure {
    Failure::usage(format!("more than one interaction begins with `{id}`: give more of it"))
}

/// Looks through what agents have read.
async fn find_read(
    books: &Orchestrator,
    names: &[AgentName],
    id: &str,
) -> Result<Option<Found>, Failure> {
    let mut names = names.to_vec();
    for task in live_agents(books).await?.into_values() {
        names.extend(AgentName::parse(&task.agent).ok().filter(|name| !names.contains(name)));
    }
    let mut found: Option<QueuedInteraction> = None;
    for name in names {
        let query =
            TaskQuery { which: TaskSelector::Session(session_of(&name)?), limit: TASKS_MAX };
        for task in books.tasks(query).await? {
            for interaction in arrived(books, &task, id).await? {
                if found.as_ref().is_some_and(|found| found.id != interaction.id) {
                    return Err(more_than_one(id));
                }
                found.get_or_insert(interaction);
            }
        }
    }
    Ok(found.map(|interaction| Found { interaction, waits: false }))
}

/// What arrived at a task under an id that begins so.
async fn arrived(
    books: &Orchestrator,
    task: &TaskSummary,
    id: &str,
) -> Result<Vec<QueuedInteraction>, Failure> {
    let mut found = Vec::new();
    let mut events = books.follow(Some(task.task_id.clone()), Position(0));
    loop {
        let unavailable =
            |error: antiphon_core::port::JournalError| Failure::unavailable(error.to_string());
        let event = events.next().await.map_err(unavailable)?;
        let seq = event.seq;
        if let EventBody::MessageQueued(message) = event.body
            && matches_id(message.id, id)
        {
            let Event { task_id, position, at, .. } = event;
            let queued = QueuedMessage { task_id, position, at, message };
            let live = !task.status.is_terminal();
            found.push(QueuedInteraction::of(&task.agent, live, queued));
        }
        if seq >= task.seq {
            return Ok(found);
        }
    }
}

fn described(shown: &Shown<'_>) -> Result<String, Failure> {
    let it = shown.interaction;
    let now = SystemClock.now();
    let time = |at: chrono::DateTime<chrono::Utc>| at.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    let quiet = if it.wakes { "" } else { ", does not wake the agent" };
    let mut rows = vec![
        ("interaction", it.id.to_string()),
        ("for", format!("{} (task {})", escaped(&it.agent), it.task_id)),
        ("from", it.from.to_string()),
        ("arrived", format!("{} ({} ago)", time(it.at), terminal::age(now - it.at))),
        ("class", word(&it.class)),
        ("salience", salience(it.salience).to_owned()),
        ("mode", format!("{}{quiet}", mode(it.mode))),
        ("state", shown.state.to_owned()),
    ];
    rows.extend(it.until.map(|until| ("answer by", time(until))));
    let rows: Vec<[String; 2]> =
        rows.into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
    let mut text = terminal::table(&rows);
    let mut section = |title: &str, body: &str| {
        text.extend(["\n", title, ":\n", body]);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    };
    section("the agent reads", &it.rendered_text);
    if !matches!(it.content, InteractionContent::Message { blocks: None, .. }) {
        section("content", &terminal::json(&it.content)?);
    }
    if let Some(result) = &shown.result {
        let text_result = result.as_str().map(|text_result| Ok(text_result.to_owned()));
        section("result", &text_result.unwrap_or_else(|| terminal::json(result))?);
    }
    Ok(text)
}
