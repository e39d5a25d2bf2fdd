//! `antiphon inbox show`: one interaction.

use antiphon_api::{QueuedInteraction, RequestState};
use antiphon_core::port::{Clock, SystemClock};
use antiphon_core::{AgentName, InteractionContent, PeerInputClass};
use antiphon_process::{Connection, FoundInteraction};
use antiphon_view::display::escaped;
use serde::Serialize;
use serde_json::Value;

use super::{mode, salience, word};
use crate::failure::Failure;
use crate::terminal;

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

/// Shows one interaction.
pub(super) async fn show(
    connection: &Connection,
    names: &[AgentName],
    id: &str,
    json: bool,
) -> Result<(), Failure> {
    let FoundInteraction { interaction, waits } = connection.find_interaction(names, id).await?;
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
