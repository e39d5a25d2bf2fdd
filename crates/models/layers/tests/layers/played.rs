//! A provider made by hand: it plays a list, and remembers what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_util::stream;
use tokio::time::{Instant, sleep};

/// What a wire does next. At the end of the list it ends.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Say(Piece),
    Wait(Duration),
    Fail(ProviderError),
    Hang,
}

/// Plays what its closure says for the n-th request, from 0. Clones are the same provider.
#[derive(Clone)]
pub(crate) struct Played(Arc<Shared>);

struct Shared {
    script: Box<dyn Fn(usize) -> Vec<Act> + Send + Sync>,
    asked: Mutex<Vec<(Instant, Request)>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

impl Played {
    pub(crate) fn new(script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            script: Box::new(script),
            asked: Mutex::new(Vec::new()),
            running: AtomicUsize::new(0),
            most_running: AtomicUsize::new(0),
        }))
    }

    /// Plays these in turn, and the last one again and again.
    pub(crate) fn in_turn(answers: Vec<Vec<Act>>) -> Self {
        let last = answers.len() - 1;
        Self::new(move |asked| answers[asked.min(last)].clone())
    }

    /// Says these pieces each time.
    pub(crate) fn saying(pieces: Vec<Piece>) -> Self {
        Self::in_turn(vec![say(pieces)])
    }

    /// Fails each time.
    pub(crate) fn failing(error: ProviderError) -> Self {
        Self::in_turn(vec![vec![Act::Fail(error)]])
    }

    /// How often it was asked.
    pub(crate) fn count(&self) -> usize {
        self.0.asked.lock().expect("nobody panicked").len()
    }

    /// What it was asked, in order.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let asked = self.0.asked.lock().expect("nobody panicked");
        asked.iter().map(|(_, request)| request.clone()).collect()
    }

    /// The time between one request and the next.
    pub(crate) fn pauses(&self) -> Vec<Duration> {
        let asked = self.0.asked.lock().expect("nobody panicked");
        asked.windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }

    /// How many answers are being read.
    pub(crate) fn running(&self) -> usize {
        self.0.running.load(Ordering::SeqCst)
    }

    /// How many were at most.
    pub(crate) fn most_running(&self) -> usize {
        self.0.most_running.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Takes note of a request, which is made when its answer is first read.
    fn begin(self: Arc<Self>, request: Request) -> Playing {
        let mut asked = self.asked.lock().expect("nobody panicked");
        let mut acts = (self.script)(asked.len());
        asked.push((Instant::now(), request));
        drop(asked);
        acts.reverse();
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        Playing { acts, shared: self }
    }
}

struct Playing {
    /// The next one last.
    acts: Vec<Act>,
    shared: Arc<Shared>,
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Playing {
    async fn next(&mut self) -> Option<Result<Piece, ProviderError>> {
        loop {
            match self.acts.pop()? {
                Act::Say(piece) => return Some(Ok(piece)),
                Act::Wait(time) => sleep(time).await,
                Act::Fail(error) => {
                    self.acts.clear();
                    return Some(Err(error));
                }
                Act::Hang => std::future::pending().await,
            }
        }
    }
}

enum State {
    Asked(Arc<Shared>, Request),
    Playing(Playing),
}

impl Provider for Played {
    fn open(&self, request: Request) -> PieceSource {
        let asked = State::Asked(Arc::clone(&self.0), request);
        Box::pin(stream::unfold(asked, |state| async {
            let mut playing = match state {
                State::Asked(shared, request) => shared.begin(request),
                State::Playing(playing) => playing,
            };
            Some((playing.next().await?, State::Playing(playing)))
        }))
    }
}

pub(crate) fn say(pieces: Vec<Piece>) -> Vec<Act> {
    pieces.into_iter().map(Act::Say).collect()
}

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
