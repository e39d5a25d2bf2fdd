//! Delivers the updates of a task to one receiver.

use std::num::NonZeroUsize;
use std::time::Duration;

use a2a::{StreamResponse, TaskPushNotificationConfig, TaskState};
use antiphon_core::port::{TaskQuery, TaskSelector};
use antiphon_core::{Position, Seq, TaskSummary};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use url::Url;

use super::{Key, PushService, PushSource, StoredConfig, Verdict};
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

/// Why a delivery ended before its task.
enum Stopped {
    /// The payer may no longer have the configuration, for this reason.
    Lost(String),
    Failed(A2aError),
}

impl From<A2aError> for Stopped {
    fn from(error: A2aError) -> Self {
        Self::Failed(error)
    }
}

/// Delivers until the end of the task, until the receiver does not answer, or until the payer loses its key.
pub(super) async fn deliver(
    service: &PushService,
    source: &PushSource,
    key: &Key,
    stored: StoredConfig,
) {
    match follow(service, source, key, &stored).await {
        Ok(()) => {}
        Err(Stopped::Lost(reason)) => service.drop_lost(key, &reason),
        Err(Stopped::Failed(error)) => {
            tracing::warn!(task.id = %key.0, ?error, "push notifications of the task ended");
            service.give_up(key);
        }
    }
}

async fn follow(
    service: &PushService,
    source: &PushSource,
    key: &Key,
    stored: &StoredConfig,
) -> Result<(), Stopped> {
    let (orchestrator, task_id) = (&source.orchestrator, &key.0);
    let sending = Sending { service, source, stored };
    let one = TaskQuery { which: TaskSelector::One(task_id.clone()), limit: NonZeroUsize::MIN };
    let Some(summary) = orchestrator.tasks(one).await.map_err(A2aError::from)?.pop() else {
        return Err(A2aError::no_task().into());
    };
    if stored.payer.is_some() && stored.payer != summary.payer {
        return Err(Stopped::Lost("its key does not see the task".to_owned()));
    }
    if stored.delivered == Seq(0) {
        // The receiver learns of the task as it is; its updates follow.
        let extent = Extent { history: Some(0), artifacts: true };
        let task = task_view::task(orchestrator, &summary, extent).await?;
        let done = task.status.state.is_terminal();
        sending.send(&StreamResponse::Task(task)).await?;
        service.record(key, summary.seq, done);
        if done {
            return Ok(());
        }
    }
    // Events that were delivered are skipped; the rest is read from the journal.
    let delivered = if stored.delivered == Seq(0) { summary.seq } else { stored.delivered };
    let from = TaskSummary { seq: delivered, ..summary };
    let follower = orchestrator.follow(Some(task_id.clone()), Position(0));
    let updates = Source { follower, deltas: None, approvals: None };
    let state = TaskState::Unspecified;
    let mut watcher = Watcher::new(orchestrator, &from, state, updates, Until::Ended).await?;
    while let Some(update) = watcher.next().await? {
        let is_end = matches!(
            &update.response,
            StreamResponse::StatusUpdate(update) if update.status.state.is_terminal()
        );
        sending.send(&update.response).await?;
        // An event with several updates is delivered when the last of them is.
        let delivered = if is_end { update.seq } else { Seq(update.seq.0.saturating_sub(1)) };
        service.record(key, delivered.max(Seq(1)), is_end);
    }
    Ok(())
}

/// A configuration whose updates are sent.
struct Sending<'a> {
    service: &'a PushService,
    source: &'a PushSource,
    stored: &'a StoredConfig,
}

impl Sending<'_> {
    /// Sends an update until it is received. For each attempt anew, the payer's key is checked, and a name is resolved
    /// and checked, and its address pinned.
    async fn send(&self, update: &StreamResponse) -> Result<(), Stopped> {
        let body = serde_json::to_string(update).unwrap_or_default();
        let mut wait = RETRY_AFTER;
        let mut failure = String::new();
        for attempt in 1..=ATTEMPTS_MAX {
            match self.source.verdict(self.stored.payer.as_deref()) {
                Verdict::Allowed => {}
                Verdict::Lost(reason) => return Err(Stopped::Lost(reason)),
                Verdict::Unknown(reason) => return Err(A2aError::internal(reason).into()),
            }
            match attempt_once(self.service, &self.stored.config, &body).await {
                Ok(()) => return Ok(()),
                Err(reason) => failure = reason,
            }
            if attempt < ATTEMPTS_MAX {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        let message = format!("the receiver does not answer: {failure}");
        Err(A2aError::invalid_request(message).into())
    }
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
