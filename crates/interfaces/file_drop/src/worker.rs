//! Doing what is to be done about one file.
//!
//! An order is carried out, then its response is written; a crash between the two has the same
//! order carried out again, with the same key. An order that cannot be carried out now is tried
//! again, after pauses that grow, as long as its file is there. A response that cannot be written
//! is tried again as it is.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::job::{Job, Outcome, Work};
use crate::name::REJECTED;
use crate::orders::{Order, OrderError, Orders};
use crate::response::{Response, ResponseError};

/// The first pause.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Most files that are read or written at a time, orders aside.
pub(crate) const HANDS_MAX: usize = 16;

/// Does what is to be done.
pub(crate) struct Worker {
    pub(crate) orders: Arc<dyn Orders>,
    /// Places for orders.
    pub(crate) places: Semaphore,
    /// Places for those who read and write files.
    pub(crate) hands: Semaphore,
    pub(crate) patience: Patience,
    pub(crate) stop: CancellationToken,
}

/// What to do about what cannot be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Try again.
    Forever,
    /// Leave it.
    Once,
}

impl Worker {
    /// May be dropped at any point: the file is found again.
    pub(crate) async fn work(self: Arc<Self>, job: Job) -> Outcome {
        let job = Arc::new(job);
        match &job.work {
            Work::Act { order, key } => {
                let answer = self.carry_out(&job, order, key).await;
                match answer {
                    Ok(response) => self.answer(&job, response).await,
                    Err(outcome) => outcome,
                }
            }
            Work::Adopt { .. } | Work::SetAside(_) | Work::Move { .. } => {
                self.until_done(&job, Job::tidy).await
            }
        }
    }

    async fn carry_out(
        &self,
        job: &Arc<Job>,
        order: &Order,
        key: &str,
    ) -> Result<Response, Outcome> {
        let mut pause = PAUSE_MIN;
        loop {
            // Nobody but the end of everything closes it.
            let place = if job.waits() { None } else { self.places.acquire().await.ok() };
            if !self.blocking(job, |job| Ok(job.is_there())).await.unwrap_or(false) {
                return Err(Outcome::Withdrawn);
            }
            if self.stop.is_cancelled() {
                return Err(Outcome::Left);
            }
            let carried = self.orders.carry_out(order.clone(), &job.key.requester, key);
            let carried = if job.waits() {
                // It is asked for again by whoever starts next.
                self.stop.run_until_cancelled(carried).await.ok_or(Outcome::Left)?
            } else {
                carried.await
            };
            drop(place);
            match carried {
                Ok(done) => return Ok(Response::done(job.to(), done)),
                Err(OrderError::Refused { code, message }) => {
                    let error = ResponseError { code, message };
                    return Ok(Response::failed(job.to(), Some(error)));
                }
                Err(OrderError::Unavailable { reason }) => {
                    self.wait(job, &mut pause, &reason).await?;
                }
            }
        }
    }

    async fn answer(&self, job: &Arc<Job>, response: Response) -> Outcome {
        self.until_done(job, move |job| {
            job.drawer.write_response(&job.name.response(), &response)?;
            tracing::debug!(
                request.requester = %job.key.requester,
                request.name = job.name.shown,
                response.ok = response.ok,
                "a request was answered"
            );
            Ok(Outcome::Answered)
        })
        .await
    }

    async fn until_done(
        &self,
        job: &Arc<Job>,
        step: impl Fn(&Job) -> io::Result<Outcome> + Send + Sync + 'static,
    ) -> Outcome {
        let (step, mut pause) = (Arc::new(step), PAUSE_MIN);
        loop {
            let step = Arc::clone(&step);
            match self.blocking(job, move |job| step(job)).await {
                Ok(outcome) => return outcome,
                Err(error) => {
                    // With the request, whoever could be told is gone.
                    if !self.blocking(job, |job| Ok(job.is_there())).await.unwrap_or(true) {
                        return Outcome::Withdrawn;
                    }
                    if let Err(outcome) = self.wait(job, &mut pause, &error.to_string()).await {
                        return outcome;
                    }
                }
            }
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        job: &Arc<Job>,
        step: impl FnOnce(&Job) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let _hand = self.hands.acquire().await.map_err(io::Error::other)?;
        let job = Arc::clone(job);
        spawn_blocking(move || step(&job)).await.map_err(io::Error::other)?
    }

    /// Waits before it is tried again; an error when it is not.
    async fn wait(&self, job: &Job, pause: &mut Duration, reason: &str) -> Result<(), Outcome> {
        tracing::warn!(
            request.requester = %job.key.requester,
            request.name = job.name.shown,
            reason,
            "a request is not answered yet"
        );
        match self.patience {
            Patience::Once => Err(Outcome::Left),
            Patience::Forever => {
                let slept = self.stop.run_until_cancelled(tokio::time::sleep(*pause)).await;
                *pause = pause.saturating_mul(2).min(PAUSE_MAX);
                slept.ok_or(Outcome::Left)
            }
        }
    }
}

impl Job {
    /// Whether the file is as it was read.
    fn is_there(&self) -> bool {
        let now = self.drawer.stamp(&self.name.file);
        now.is_some_and(|stamp| stamp.mark == self.stamp.mark)
    }

    /// Everything but orders.
    fn tidy(&self) -> io::Result<Outcome> {
        match &self.work {
            Work::SetAside(_) | Work::Move { .. } if !self.is_there() => Ok(Outcome::Withdrawn),
            Work::SetAside(error) => self.set_aside(error),
            Work::Move { place, error } => {
                let Ok(rejected) = self.drawer.rejected() else { return Ok(Outcome::Answered) };
                rejected.explain(place, error)?;
                self.drawer.set_aside(&self.name, self.stamp.mark, &rejected, place)?;
                Ok(Outcome::SetAside)
            }
            Work::Adopt { response, old } => {
                let response =
                    Response { request: self.name.shown.clone(), ..(**response).clone() };
                // The new one first: a crash in between leaves two, and not none.
                self.drawer.write_response(&self.name.response(), &response)?;
                self.drawer.remove(old);
                Ok(Outcome::Answered)
            }
            Work::Act { .. } => Ok(Outcome::Left),
        }
    }

    /// Answers, says why, then moves: a crash in between does the rest again.
    fn set_aside(&self, error: &ResponseError) -> io::Result<Outcome> {
        let response = Response::failed(self.to(), Some(error.clone()));
        let answer = |set_aside| {
            let response = Response { set_aside, ..response.clone() };
            self.drawer.write_response(&self.name.response(), &response)
        };
        let rejected = match self.drawer.rejected() {
            Ok(rejected) => rejected,
            Err(reason) => {
                // It is told all the same, and stays where it is.
                tracing::warn!(
                    request.requester = %self.key.requester,
                    %reason,
                    "a bad file cannot be set aside"
                );
                answer(None)?;
                return Ok(Outcome::Answered);
            }
        };
        let place = rejected.place(&self.name);
        answer(Some(format!("{REJECTED}/{place}")))?;
        rejected.explain(&place, error)?;
        self.drawer.set_aside(&self.name, self.stamp.mark, &rejected, &place)?;
        tracing::info!(
            request.requester = %self.key.requester,
            request.name = self.name.shown,
            reason = error.message,
            "a file was set aside"
        );
        Ok(Outcome::SetAside)
    }
}
