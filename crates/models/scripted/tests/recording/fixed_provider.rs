//! A test provider that sends fixed pieces for any request.

use std::sync::Arc;

use antiphon_core::{Piece, PieceSource, Provider, ProviderError, Request};
use futures_util::{StreamExt, stream};

/// Sends these in order.
#[derive(Debug, Clone)]
pub(crate) struct FixedProvider {
    items: Arc<[Result<Piece, ProviderError>]>,
    end: End,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Ends,
    /// Nothing more is sent, and no end.
    Hangs,
}

impl FixedProvider {
    pub(crate) fn new(items: Vec<Result<Piece, ProviderError>>, end: End) -> Self {
        Self { items: items.into(), end }
    }

    pub(crate) fn pieces(pieces: Vec<Piece>) -> Self {
        Self::new(pieces.into_iter().map(Ok).collect(), End::Ends)
    }

    pub(crate) fn failing(error: ProviderError) -> Self {
        Self::new(vec![Err(error)], End::Ends)
    }
}

impl Provider for FixedProvider {
    fn open(&self, _: Request) -> PieceSource {
        let items = stream::iter(self.items.to_vec()).then(|item| async {
            // Yields to other tasks.
            tokio::task::yield_now().await;
            item
        });
        match self.end {
            End::Ends => Box::pin(items),
            End::Hangs => Box::pin(items.chain(stream::pending())),
        }
    }
}

pub(crate) fn text(block: u32, delta: &str) -> Piece {
    Piece::Text { block, delta: delta.to_owned() }
}

pub(crate) fn arguments(block: u32, delta: &str) -> Piece {
    Piece::ToolCall { block, id: None, name: None, arguments: delta.to_owned() }
}
