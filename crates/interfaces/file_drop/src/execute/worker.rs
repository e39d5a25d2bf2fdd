//! Executes one request.
//!
//! Executes the order, then writes the response; after a crash between the two, the order is
//! executed again with the same key. An order that cannot be executed now is tried again after
//! growing pauses, as long as its file exists. A response that cannot be written is written again.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use antiphon_core::port::OrderExecutor;
use antiphon_core::{Order, OrderError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::execute::pending_request::{Outcome, PendingRequest, RequestAction};
use crate::fault::Fault;
use crate::folder::name::REJECTED;
use crate::folder_trust::FolderTrust;
use crate::response::{Response, ResponseError};

/// Pause before the second attempt.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Most concurrent file operations.
pub(crate) const FILE_SLOTS_MAX: usize = 16;

/// The answer to a request in a folder that is not trusted.
const NOT_TRUSTED: &str = "refused: not trusted. This folder may have come with the project. Trust it with \
                           `antiphon trust`, then delete this response: the request is carried out";

/// Executes requests.
pub(crate) struct Worker {
    pub(crate) orders: Arc<dyn OrderExecutor>,
    pub(crate) trust: FolderTrust,
    /// The folders of requests, by index.
    pub(crate) folders: Vec<PathBuf>,
    /// Limits concurrent orders.
    pub(crate) order_slots: Semaphore,
    /// Limits concurrent file operations.
    pub(crate) file_slots: Semaphore,
    pub(crate) retry: RetryPolicy,
    pub(crate) stop: CancellationToken,
}

/// What to do when a request cannot be handled now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// Try again until it succeeds.
    Forever,
    /// Postpone it.
    Never,
}

impl Worker {
    /// Cancel safe: the next start finds the file again.
    pub(crate) async fn execute(self: Arc<Self>, pending: PendingRequest) -> Outcome {
        let pending = Arc::new(pending);
        match &pending.action {
            RequestAction::Execute { order, key } => {
                let answer = self.execute_order(&pending, order, key).await;
                match answer {
                    Ok(response) => self.answer(&pending, response).await,
                    Err(outcome) => outcome,
                }
            }
            RequestAction::AdoptResponse { .. }
            | RequestAction::Reject(_)
            | RequestAction::MoveRejected { .. } => {
                self.until_done(&pending, PendingRequest::finish).await
            }
        }
    }

    async fn execute_order(
        &self,
        pending: &Arc<PendingRequest>,
        order: &Order,
        key: &str,
    ) -> Result<Response, Outcome> {
        let mut pause = PAUSE_MIN;
        loop {
            // The semaphore is never closed.
            let slot = if pending.waits_for_result() {
                None
            } else {
                self.order_slots.acquire().await.ok()
            };
            if !self.blocking(pending, |pending| Ok(pending.is_unchanged())).await.unwrap_or(false)
            {
                return Err(Outcome::Withdrawn);
            }
            if self.stop.is_cancelled() {
                return Err(Outcome::Postponed);
            }
            if !self.is_trusted(pending).await {
                let error = ResponseError::from(Fault::forbidden(NOT_TRUSTED));
                return Ok(Response::failed(pending.reference(), Some(error)));
            }
            let executed = self.orders.execute(order.clone(), &pending.key.requester, key);
            let executed = if pending.waits_for_result() {
                // The next start executes it again.
                self.stop.run_until_cancelled(executed).await.ok_or(Outcome::Postponed)?
            } else {
                executed.await
            };
            drop(slot);
            match executed {
                Ok(done) => return Ok(Response::done(pending.reference(), done)),
                Err(OrderError::Refused { code, message }) => {
                    let error = ResponseError { code, message };
                    return Ok(Response::failed(pending.reference(), Some(error)));
                }
                Err(OrderError::Unavailable { reason }) => {
                    self.wait(pending, &mut pause, &reason).await?;
                }
            }
        }
    }

    async fn is_trusted(&self, pending: &Arc<PendingRequest>) -> bool {
        let Some(folder) = self.folders.get(pending.key.root).cloned() else { return false };
        let trust = self.trust.clone();
        self.blocking(pending, move |_| Ok(trust.is_trusted(&folder))).await.unwrap_or(false)
    }

    async fn answer(&self, pending: &Arc<PendingRequest>, response: Response) -> Outcome {
        self.until_done(pending, move |pending| {
            pending.folder.write_response(&pending.name.response(), &response)?;
            tracing::debug!(
                request.requester = %pending.key.requester,
                request.name = pending.name.shown,
                response.ok = response.ok,
                "a request was answered"
            );
            Ok(Outcome::Answered)
        })
        .await
    }

    async fn until_done(
        &self,
        pending: &Arc<PendingRequest>,
        step: impl Fn(&PendingRequest) -> io::Result<Outcome> + Send + Sync + 'static,
    ) -> Outcome {
        let (step, mut pause) = (Arc::new(step), PAUSE_MIN);
        loop {
            let step = Arc::clone(&step);
            match self.blocking(pending, move |pending| step(pending)).await {
                Ok(outcome) => return outcome,
                Err(error) => {
                    // Without its request, the response has no reader.
                    if !self
                        .blocking(pending, |pending| Ok(pending.is_unchanged()))
                        .await
                        .unwrap_or(true)
                    {
                        return Outcome::Withdrawn;
                    }
                    if let Err(outcome) = self.wait(pending, &mut pause, &error.to_string()).await {
                        return outcome;
                    }
                }
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        pending: &Arc<PendingRequest>,
        step: impl FnOnce(&PendingRequest) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _slot = self.file_slots.acquire().await.map_err(io::Error::other)?;
        let pending = Arc::clone(pending);
        spawn_blocking(move || step(&pending)).await.map_err(io::Error::other)?
    }

    /// Waits before the next attempt; an error when there is none.
    async fn wait(
        &self,
        pending: &PendingRequest,
        pause: &mut Duration,
        reason: &str,
    ) -> Result<(), Outcome> {
        tracing::warn!(
            request.requester = %pending.key.requester,
            request.name = pending.name.shown,
            reason,
            "a request is not answered yet"
        );
        match self.retry {
            RetryPolicy::Never => Err(Outcome::Postponed),
            RetryPolicy::Forever => {
                let slept = self.stop.run_until_cancelled(tokio::time::sleep(*pause)).await;
                *pause = pause.saturating_mul(2).min(PAUSE_MAX);
                slept.ok_or(Outcome::Postponed)
            }
        }
    }
}

impl PendingRequest {
    /// Whether the file is in the state in which it was read.
    fn is_unchanged(&self) -> bool {
        let now = self.folder.state(&self.name.file);
        now.is_some_and(|state| state.file_id == self.state.file_id)
    }

    /// Handles every action but `Execute`.
    fn finish(&self) -> io::Result<Outcome> {
        match &self.action {
            RequestAction::Reject(_) | RequestAction::MoveRejected { .. }
                if !self.is_unchanged() =>
            {
                Ok(Outcome::Withdrawn)
            }
            RequestAction::Reject(error) => self.reject(error),
            RequestAction::MoveRejected { target, error } => {
                let Ok(rejected) = self.folder.rejected_folder() else {
                    return Ok(Outcome::Answered);
                };
                rejected.explain(target, error)?;
                self.folder.reject(&self.name, self.state.file_id, &rejected, target)?;
                Ok(Outcome::SetAside)
            }
            RequestAction::AdoptResponse { response, old } => {
                let response =
                    Response { request: self.name.shown.clone(), ..(**response).clone() };
                // The new response first: a crash in between leaves two responses, not none.
                self.folder.write_response(&self.name.response(), &response)?;
                self.folder.remove(old);
                Ok(Outcome::Answered)
            }
            RequestAction::Execute { .. } => Ok(Outcome::Postponed),
        }
    }

    /// Writes the response and the reason, then moves the file: after a crash in between, the rest
    /// is done again.
    fn reject(&self, error: &ResponseError) -> io::Result<Outcome> {
        let response = Response::failed(self.reference(), Some(error.clone()));
        let answer = |set_aside| {
            let response = Response { set_aside, ..response.clone() };
            self.folder.write_response(&self.name.response(), &response)
        };
        let rejected = match self.folder.rejected_folder() {
            Ok(rejected) => rejected,
            Err(reason) => {
                // The response is written all the same, and the file stays.
                tracing::warn!(
                    request.requester = %self.key.requester,
                    %reason,
                    "a rejected file cannot be moved"
                );
                answer(None)?;
                return Ok(Outcome::Answered);
            }
        };
        let target = rejected.free_name(&self.name);
        answer(Some(format!("{REJECTED}/{target}")))?;
        rejected.explain(&target, error)?;
        self.folder.reject(&self.name, self.state.file_id, &rejected, &target)?;
        tracing::info!(
            request.requester = %self.key.requester,
            request.name = self.name.shown,
            reason = error.message,
            "a file was rejected"
        );
        Ok(Outcome::SetAside)
    }
}
