//! A test provider that plays a list of actions and records its requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_util::stream;
use tokio::time::{Instant, sleep};

/// The next action. At the end of the list, the stream ends.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Send(Piece),
    Wait(Duration),
    Fail(ProviderError),
    Hang,
}

/// Plays the actions that its closure returns for the n-th request, from 0. Clones share their
/// state.
#[derive(Clone)]
pub(crate) struct TestProvider(Arc<Shared>);

struct Shared {
    script: Box<dyn Fn(usize) -> Vec<Action> + Send + Sync>,
    requested: Mutex<Vec<(Instant, Request)>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl TestProvider {
    pub(crate) fn new(script: impl Fn(usize) -> Vec<Action> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            script: Box::new(script),
            requested: Mutex::new(Vec::new()),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }))
    }

    /// Plays these in turn, then repeats the last one.
    pub(crate) fn in_turn(answers: Vec<Vec<Action>>) -> Self {
        let last = answers.len() - 1;
        Self::new(move |requested| answers[requested.min(last)].clone())
    }

    /// Sends these pieces each time.
    pub(crate) fn sending(pieces: Vec<Piece>) -> Self {
        Self::in_turn(vec![say(pieces)])
    }

    /// Fails each time.
    pub(crate) fn failing(error: ProviderError) -> Self {
        Self::in_turn(vec![vec![Action::Fail(error)]])
    }

    /// Number of requests.
    pub(crate) fn count(&self) -> usize {
        self.0.requested.lock().expect("not poisoned").len()
    }

    /// All requests, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let requested = self.0.requested.lock().expect("not poisoned");
        requested.iter().map(|(_, request)| request.clone()).collect()
    }

    /// The times between requests.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        let requested = self.0.requested.lock().expect("not poisoned");
        requested.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }

    /// Number of running answers.
    pub(crate) fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// Largest number of running answers.
    pub(crate) fn most_running(&self) -> usize {
        self.0.most_running.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Records a request, when its answer is first polled.
    fn begin(self: Arc<Self>, request: Request) -> TestSource {
        let mut requested = self.requested.lock().expect("not poisoned");
        let mut acts = (self.script)(requested.len());
        requested.push((Instant::now(), request));
        drop(requested);
        acts.reverse();
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        TestSource { acts, shared: self }
    }
}

struct TestSource {
    /// In reverse order.
    acts: Vec<Action>,
    shared: Arc<Shared>,
}

impl Drop for TestSource {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TestSource {
    async fn next(&mut self) -> Option<Result<Piece, ProviderError>> {
        loop {
            match self.acts.pop()? {
                Action::Send(piece) => return Some(Ok(piece)),
                Action::Wait(time) => sleep(time).await,
                Action::Fail(error) => {
                    self.acts.clear();
                    return Some(Err(error));
                }
                Action::Hang => std::future::pending().await,
            }
        }
    }
}

enum State {
    Asked(Arc<Shared>, Box<Request>),
    TestSource(TestSource),
}

impl Provider for TestProvider {
    fn open(&self, request: Request) -> PieceSource {
        let requested = State::Asked(Arc::clone(&self.0), Box::new(request));
        Box::pin(stream::unfold(requested, |state| async {
            let mut playing = match state {
                State::Asked(shared, request) => shared.begin(*request),
                State::TestSource(playing) => playing,
            };
            Some((playing.next().await?, State::TestSource(playing)))
        }))
    }
}

pub(crate) fn say(pieces: Vec<Piece>) -> Vec<Action> {
    pieces.into_iter().map(Action::Send).collect()
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
