//! Delivers the updates of a task to one receiver.

use std::num::NonZeroUsize;
use std::time::Duration;

use a2a::{StreamResponse, TaskPushNotificationConfig, TaskState};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Position, Seq, TaskSummary};
use antiphon_runtime::Orchestrator;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use url::Url;

use super::{Key, PushService, StoredConfig};
use crate::error::A2aError;
use crate::task_view::{self, Extent};
use crate::watcher::{Source, Until, Watcher};

/// How often an update is sent, at most.
const ATTEMPTS_MAX: u32 = 6;

/// Pause before the second attempt; it doubles with each further one.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// How long a receiver may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(15);

/// Header with the token of a configuration.
const TOKEN: &str = "X-A2A-Notification-Token";

/// Delivers until the end of the task, or until the receiver does not answer.
pub(super) async fn deliver(
    service: &PushService,
    orchestrator: &Orchestrator,
    key: &Key,
    stored: StoredConfig,
) {
    if let Err(error) = follow(service, orchestrator, key, stored).await {
        tracing::warn!(task.id = %key.0, ?error, "push notifications of the task ended");
        service.give_up(key);
    }
}

async fn follow(
    service: &PushService,
    orchestrator: &Orchestrator,
    key: &Key,
    stored: StoredConfig,
) -> Result<(), A2aError> {
    let (task_id, config) = (&key.0, &stored.config);
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let Some(summary) = orchestrator.tasks(one).await?.into_iter().next() else {
        return Err(A2aError::no_task());
    };
    if stored.delivered == Seq(0) {
        // The receiver learns of the task as it is; its updates follow.
        let extent = Extent { history: Some(0), artifacts: true };
        let task = task_view::task(orchestrator, &summary, extent).await?;
        let done = task.status.state.is_terminal();
        send(service, config, &StreamResponse::Task(task)).await?;
        service.record(key, summary.seq, done);
        if done {
            return Ok(());
        }
    }
    // Events that were delivered are skipped; the rest is read from the journal.
    let delivered = if stored.delivered == Seq(0) { summary.seq } else { stored.delivered };
    let from = TaskSummary { seq: delivered, ..summary };
    let follower = orchestrator.follow(Some(task_id.clone()), Position(0));
    let source = Source { follower, deltas: None, approvals: None };
    let state = TaskState::Unspecified;
    let mut watcher = Watcher::new(orchestrator, &from, state, source, Until::Ended).await?;
    while let Some(update) = watcher.next().await? {
        let is_end = matches!(
            &update.response,
            StreamResponse::StatusUpdate(update) if update.status.state.is_terminal()
        );
        send(service, config, &update.response).await?;
        // An event with several updates is delivered when the last of them is.
        let delivered = if is_end { update.seq } else { Seq(update.seq.0.saturating_sub(1)) };
        service.record(key, delivered.max(Seq(1)), is_end);
    }
    Ok(())
}

/// Sends an update until it is received. A name is resolved and checked for each attempt anew, and its address pinned.
async fn send(
    service: &PushService,
    config: &TaskPushNotificationConfig,
    update: &StreamResponse,
) -> Result<(), A2aError> {
    let body = serde_json::to_string(update).unwrap_or_default();
    let mut wait = RETRY_AFTER;
    let mut failure = String::new();
    for attempt in 1..=ATTEMPTS_MAX {
        match attempt_once(service, config, &body).await {
            Ok(()) => return Ok(()),
            Err(reason) => failure = reason,
        }
        if attempt < ATTEMPTS_MAX {
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }
    Err(A2aError::invalid_request(format!("the receiver does not answer: {failure}")))
}

async fn attempt_once(
    service: &PushService,
    config: &TaskPushNotificationConfig,
    body: &str,
) -> Result<(), String> {
    let url = Url::parse(&config.url).map_err(|error| error.to_string())?;
    let client = service.inner.rules.client(&url).await.map_err(|error| error.to_string())?;
    let mut request = client
        .post(url)
        .timeout(ANSWER_WAIT)
        .header(CONTENT_TYPE, "application/a2a+json")
        .body(body.to_owned());
    if let Some(token) = &config.token {
        request = request.header(TOKEN, token);
    }
    if let Some(authentication) = &config.authentication {
        let credentials = authentication.credentials.as_deref().unwrap_or_default();
        let value = format!("{} {credentials}", authentication.scheme);
        request = request.header(AUTHORIZATION, value.trim());
    }
    let response = request.send().await.map_err(|error| error.without_url().to_string())?;
    if response.status().is_success() { Ok(()) } else { Err(response.status().to_string()) }
}
