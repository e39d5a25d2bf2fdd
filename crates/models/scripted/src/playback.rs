//! Streams an answer: returns its pieces and waits in between. Dropping it ends it, also during a
//! stall.

use std::collections::VecDeque;
use std::time::Duration;

use antiphon_core::{Piece, ProviderError};
use futures_core::Stream;
use futures_util::stream;

use crate::block::Block;

/// An answer that is being streamed.
#[derive(Debug)]
pub(crate) struct Playback {
    actions: VecDeque<PlaybackAction>,
    /// Before each delta.
    delay: Duration,
}

/// The next action.
#[derive(Debug)]
pub(crate) enum PlaybackAction {
    Send(Piece),
    /// One piece of each in turn, until all are sent.
    Blocks(VecDeque<Block>),
    Pause(Duration),
    Fail(ProviderError),
    Stall,
}

impl Playback {
    pub(crate) fn new(actions: VecDeque<PlaybackAction>, delay: Duration) -> Self {
        Self { actions, delay }
    }

    /// An answer that fails at once.
    pub(crate) fn failed(error: ProviderError) -> Self {
        Self::new([PlaybackAction::Fail(error)].into(), Duration::ZERO)
    }

    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Piece, ProviderError>> + Send {
        stream::unfold(self, |mut playback| async move {
            let piece = playback.next().await?;
            Some((piece, playback))
        })
    }

    async fn next(&mut self) -> Option<Result<Piece, ProviderError>> {
        // A network stream yields while it waits; an endless text without delays must yield, too.
        tokio::task::consume_budget().await;
        loop {
            match self.actions.pop_front()? {
                PlaybackAction::Send(piece) => return Some(Ok(piece)),
                PlaybackAction::Blocks(mut blocks) => {
                    let Some(mut block) = blocks.pop_front() else {
                        continue;
                    };
                    let piece = block.next();
                    if piece.is_some() {
                        blocks.push_back(block);
                    }
                    self.actions.push_front(PlaybackAction::Blocks(blocks));
                    if let Some(piece) = piece {
                        self.wait_before(&piece).await;
                        return Some(Ok(piece));
                    }
                }
                PlaybackAction::Pause(pause) => wait(pause).await,
                PlaybackAction::Fail(error) => return Some(Err(error)),
                PlaybackAction::Stall => std::future::pending().await,
            }
        }
    }

    async fn wait_before(&self, piece: &Piece) {
        match piece {
            Piece::Text { .. } | Piece::Thinking { .. } | Piece::ToolCall { .. } => {
                wait(self.delay).await;
            }
            Piece::Model(_)
            | Piece::Signature { .. }
            | Piece::Opaque { .. }
            | Piece::BlockEnd { .. }
            | Piece::Usage(_)
            | Piece::Stop(_)
            | Piece::Alive
            | Piece::Done => {}
        }
    }
}

/// Without a delay no timer is needed, and so no runtime that has one.
async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}
