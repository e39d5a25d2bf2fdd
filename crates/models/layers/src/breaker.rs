//! A circuit breaker for a provider that keeps failing.
//!
//! | state     | a request                         | and then                                   |
//! |-----------|-----------------------------------|--------------------------------------------|
//! | closed    | is sent                           | after consecutive failures: open           |
//! | open      | fails at once                     | after a while: half-open                   |
//! | half-open | one is sent, the others fail      | success: closed; failure: open again       |
//!
//! A failure is a temporary error ([`ProviderError::is_transient`]) or an answer that ends before
//! its first piece. A provider that refuses a request works, and so does one whose answer has
//! started, however it ends. A probe that is dropped without a result makes room for another.
//! Requests from before the circuit opened no longer count: only the probe decides. A request that a person
//! wants at once ([`Request::is_urgent`]) is a probe even while the circuit is open.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_core::Stream;
use tokio::time::Instant;

/// When to open the circuit, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Consecutive failures that open the circuit.
    pub failures: NonZeroU32,
    /// How long it stays open.
    pub open_for: Duration,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        const FIVE: NonZeroU32 = NonZeroU32::new(5).unwrap();
        Self { failures: FIVE, open_for: Duration::from_secs(30) }
    }
}

/// How long others wait at most before they ask again whether a probe has succeeded.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// What a breaker does with the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Sends it.
    Closed,
    /// Fails it at once.
    Open,
    /// Sends one as a probe.
    HalfOpen,
}

/// A provider behind a circuit breaker.
#[derive(Debug, Clone)]
pub struct Breaker<P> {
    inner: P,
    circuit: Arc<Circuit>,
}

impl<P: Provider> Breaker<P> {
    /// Wraps `inner`.
    pub fn new(inner: P, config: BreakerConfig) -> Self {
        let state = Mutex::new(State::Closed(0));
        let circuit = Circuit { config, state, last_failure: Mutex::default() };
        Self { inner, circuit: Arc::new(circuit) }
    }

    /// What the breaker does with the next request.
    pub fn state(&self) -> BreakerState {
        match *self.circuit.lock() {
            State::Closed(_) => BreakerState::Closed,
            State::Open { since } if !self.circuit.rest_left(since).is_zero() => BreakerState::Open,
            State::Open { .. } | State::HalfOpen | State::Probing => BreakerState::HalfOpen,
        }
    }
}

impl<P: Provider> Provider for Breaker<P> {
    fn open(&self, request: Request) -> PieceSource {
        Box::pin(BreakerSource {
            circuit: Arc::clone(&self.circuit),
            is_urgent: request.is_urgent,
            // Opened now, polled only if the request is allowed: an opened source has sent nothing.
            source: Some(self.inner.open(request)),
            verdict: Verdict::Unasked,
        })
    }
}

#[derive(Debug)]
struct Circuit {
    config: BreakerConfig,
    state: Mutex<State>,
    /// The text of the last failure.
    last_failure: Mutex<Option<String>>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// With this many consecutive failures.
    Closed(u32),
    Open {
        since: Instant,
    },
    /// The next request is the probe.
    HalfOpen,
    /// The probe is running.
    Probing,
}

/// What an allowed request may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permit {
    Regular,
    Probe,
}

/// What a request shows about the provider.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Alive,
    Failed,
    /// Nothing: it was dropped.
    Abandoned,
}

impl Circuit {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rest_left(&self, since: Instant) -> Duration {
        self.config.open_for.saturating_sub(since.elapsed())
    }

    /// Allows a request, or returns how long none is allowed.
    fn enter(&self, is_urgent: bool) -> Result<Permit, Duration> {
        let mut state = self.lock();
        match *state {
            State::Closed(_) => return Ok(Permit::Regular),
            // The probe decides soon.
            State::Probing => return Err(self.config.open_for.min(PROBE_WAIT)),
            State::Open { since } => {
                let left = self.rest_left(since);
                if !left.is_zero() && !is_urgent {
                    return Err(left);
                }
            }
            State::HalfOpen => {}
        }
        *state = State::Probing;
        Ok(Permit::Probe)
    }

    fn note(&self, failure: &ProviderError) {
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(failure.to_string());
    }

    /// The failure of a request that is not sent.
    fn resting(&self, left: Duration) -> ProviderError {
        let last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = last.map_or_else(String::new, |last| format!(" (the last time: {last})"));
        let seconds = left.as_millis().div_ceil(1000);
        ProviderError::Overloaded {
            message: format!("it failed too often{last} and is not asked for another {seconds} s"),
            retry_after: Some(left),
        }
    }

    fn learn(&self, pass: Permit, outcome: Outcome) {
        let mut state = self.lock();
        let open = || State::Open { since: Instant::now() };
        *state = match (*state, pass, outcome) {
            (State::Closed(failures), _, Outcome::Failed) => {
                let failures = failures.saturating_add(1);
                if failures < self.config.failures.get() { State::Closed(failures) } else { open() }
            }
            (State::Closed(_), _, Outcome::Alive)
            | (State::Probing, Permit::Probe, Outcome::Alive) => State::Closed(0),
            (State::Probing, Permit::Probe, Outcome::Failed) => open(),
            (State::Probing, Permit::Probe, Outcome::Abandoned) => State::HalfOpen,
            (State::Closed(_), _, Outcome::Abandoned)
            | (State::Open { .. } | State::HalfOpen, _, _)
            | (State::Probing, Permit::Regular, _) => return,
        };
    }
}

struct BreakerSource {
    circuit: Arc<Circuit>,
    is_urgent: bool,
    source: Option<PieceSource>,
    verdict: Verdict,
}

enum Verdict {
    Unasked,
    Pending(Permit),
    Given,
}

impl BreakerSource {
    fn judge(&mut self, pass: Permit, item: Option<&Result<Piece, ProviderError>>) {
        let outcome = match item {
            Some(Ok(piece)) if !piece.is_output() => return,
            Some(Ok(_)) => Outcome::Alive,
            Some(Err(error)) if !error.is_transient() => Outcome::Alive,
            Some(Err(_)) | None => Outcome::Failed,
        };
        self.verdict = Verdict::Given;
        if let Some(Err(error)) = item {
            self.circuit.note(error);
        }
        self.circuit.learn(pass, outcome);
    }
}

impl Stream for BreakerSource {
    type Item = Result<Piece, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if matches!(self.verdict, Verdict::Unasked) {
            match self.circuit.enter(self.is_urgent) {
                Ok(pass) => self.verdict = Verdict::Pending(pass),
                Err(left) => {
                    self.source = None;
                    self.verdict = Verdict::Given;
                    return Poll::Ready(Some(Err(self.circuit.resting(left))));
                }
            }
        }
        let Some(source) = &mut self.source else {
            return Poll::Ready(None);
        };
        let item = ready!(source.as_mut().poll_next(cx));
        if let Verdict::Pending(pass) = self.verdict {
            self.judge(pass, item.as_ref());
        }
        Poll::Ready(item)
    }
}

impl Drop for BreakerSource {
    fn drop(&mut self) {
        if let Verdict::Pending(pass) = self.verdict {
            self.circuit.learn(pass, Outcome::Abandoned);
        }
    }
}
