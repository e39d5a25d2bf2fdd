//! The model, served by the runner. A slow reader delays only its own answer.

use std::collections::VecDeque;
use std::sync::Arc;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::link::{Batch, Link, LinkError};
use crate::wire::{FrameError, FromWorker, Id};

/// The model of the task, called by the runner.
pub(super) struct RemoteProvider {
    link: Arc<Link>,
}

impl RemoteProvider {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }
}

impl Provider for RemoteProvider {
    fn open(&self, request: Request) -> PieceSource {
        let state = State::New(Arc::clone(&self.link), Box::new(request));
        Box::pin(stream::unfold(state, State::next))
    }
}

enum State {
    New(Arc<Link>, Box<Request>),
    Open(Answer),
    Over,
}

/// An answer that is being read. Dropping it closes it in the runner.
struct Answer {
    link: Arc<Link>,
    id: Id,
    batches: mpsc::Receiver<Batch>,
    ready: VecDeque<Piece>,
    _permit: OwnedSemaphorePermit,
}

type Item = Result<Piece, ProviderError>;

impl State {
    async fn next(self) -> Option<(Item, Self)> {
        let answer = match self {
            Self::New(link, request) => Answer::open(link, request).await,
            Self::Open(answer) => Ok(answer),
            Self::Over => return None,
        };
        match answer {
            Ok(answer) => answer.next().await,
            Err(error) => Some((Err(error), Self::Over)),
        }
    }
}

impl Answer {
    async fn open(link: Arc<Link>, request: Box<Request>) -> Result<Self, ProviderError> {
        let permit = Arc::clone(&link.streams).acquire_owned().await;
        let permit = permit.map_err(|_| failed(LinkError::Gone))?;
        let (id, batches) = link.listen_to();
        let ready = VecDeque::new();
        let answer = Self { link, id, batches, ready, _permit: permit };
        answer.link.say(&FromWorker::Open { id, request }).await.map_err(failed)?;
        Ok(answer)
    }

    async fn next(mut self) -> Option<(Item, State)> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some((Ok(piece), State::Open(self)));
            }
            match self.batches.recv().await {
                Some(Batch::Pieces(pieces)) => {
                    self.ready.extend(pieces);
                    let more = FromWorker::More { id: self.id };
                    if let Err(error) = self.link.say(&more).await {
                        return Some((Err(failed(error)), State::Over));
                    }
                }
                Some(Batch::End(None)) => return None,
                Some(Batch::End(Some(failure))) => return Some((Err(failure), State::Over)),
                None => return Some((Err(failed(LinkError::Gone)), State::Over)),
            }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.link.forget(self.id);
    }
}

fn failed(error: LinkError) -> ProviderError {
    match error {
        LinkError::Frame(error @ FrameError::TooLong { .. }) => {
            ProviderError::ContextOverflow { message: error.to_string() }
        }
        LinkError::Frame(error @ FrameError::Malformed { .. }) => {
            ProviderError::InvalidRequest { message: error.to_string() }
        }
        LinkError::Gone | LinkError::Frame(FrameError::Broken(_)) => {
            ProviderError::Connection { message: error.to_string() }
        }
    }
}
